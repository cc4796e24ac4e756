package serve

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foldhost/foldhost/internal/foldwire"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// Service answers the calls of the protocol.
type Service struct {
	pluginproto.UnimplementedPluginServer
	plugin Plugin
	logger hclog.Logger
	flight flight

	// mu guards what follows. No call is made with it held.
	mu         sync.Mutex
	configured bool
	instance   Instance // nil until Configure has succeeded
	folding    bool
	offering   bool
}

// NewService returns a service that nobody has configured yet.
func NewService(p Plugin, logger hclog.Logger) *Service { return &Service{plugin: p, logger: logger} }

// Describe implements the protocol.
func (s *Service) Describe(context.Context, *pluginproto.DescribeRequest) (*pluginproto.DescribeResponse, error) {
	return s.plugin.describe(), nil
}

// Configure implements the protocol.
func (s *Service) Configure(_ context.Context, m *pluginproto.ConfigureRequest) (*pluginproto.ConfigureResponse, error) {
	s.mu.Lock()
	again := s.configured
	s.configured = true
	s.mu.Unlock()
	if again {
		return nil, status.Error(codes.FailedPrecondition, "Configure comes once in the life of a process")
	}
	instance, problems := s.plugin.Start(m.Config, s.logger)
	if len(problems) > 0 {
		out := &pluginproto.ConfigureResponse{}
		for _, p := range problems {
			out.Problems = append(out.Problems, &pluginproto.ConfigProblem{Path: text(p.Path), Message: text(p.Message)})
		}
		return out, nil
	}
	s.mu.Lock()
	s.instance = instance
	s.mu.Unlock()
	return &pluginproto.ConfigureResponse{}, nil
}

func (s *Service) running() (Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instance == nil {
		return nil, status.Error(codes.FailedPrecondition, "the plugin has no configuration yet; Configure comes first, and must succeed")
	}
	return s.instance, nil
}

// begin takes one of the two streams that come once in the life of a process.
func (s *Service) begin(taken *bool, name string) (Instance, error) {
	instance, err := s.running()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if *taken {
		return nil, status.Errorf(codes.FailedPrecondition, "%s comes once in the life of a process", name)
	}
	*taken = true
	return instance, nil
}

// Registrations implements the protocol.
func (s *Service) Registrations(_ *pluginproto.RegistrationsRequest, stream pluginproto.Plugin_RegistrationsServer) error {
	instance, err := s.begin(&s.offering, "Registrations")
	if err != nil {
		return err
	}
	for {
		units, tools, changed := instance.Offer()
		m := &pluginproto.RegistrationSet{}
		for _, u := range units {
			m.Units = append(m.Units, foldwire.Unit(&u.Definition))
		}
		for i := range tools {
			m.Tools = append(m.Tools, toolMessage(&tools[i]))
		}
		if err := stream.Send(m); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// maxBatches is how many batches may be in the plugin at once. The host's window is a few for each session, so that this is dozens of
// sessions; at the usual size of a message, 1 MiB, it is what a plugin may need for them. Past it the stream is not read.
const maxBatches = 128

// Fold implements the protocol.
func (s *Service) Fold(stream pluginproto.Plugin_FoldServer) error {
	instance, err := s.begin(&s.folding, "Fold")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()

	find := func(key string) *unit.Compiled {
		units, _, _ := instance.Offer()
		for _, u := range units {
			if u.Key == key {
				return u
			}
		}
		return nil
	}
	type answer struct {
		job   job
		reply unit.Reply
	}
	answers := make(chan answer, maxBatches) // room for every batch, so that no worker waits for the wire
	room := make(chan struct{}, maxBatches)
	f := newFolds(ctx, find, func(j job, r unit.Reply) { answers <- answer{j, r} })

	sent := make(chan error, 1)
	go func() {
		var failed error
		for a := range answers {
			for m := range foldwire.Replies(&a.reply, a.job.number, a.job.generation) {
				if failed == nil {
					failed = stream.Send(m)
				}
			}
			if failed != nil {
				cancel()
			}
			if a.job.counted {
				s.flight.leave()
			}
			<-room
		}
		sent <- failed
	}()

	var received error
	for received == nil {
		var m *pluginproto.FoldBatch
		if m, received = stream.Recv(); received != nil {
			break
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			received = context.Cause(ctx)
			continue
		}
		s.take(f, m)
	}
	if received != io.EOF {
		cancel()
	}
	f.wait()
	close(answers)
	failed := <-sent
	switch {
	case failed != nil:
		return failed
	case received != io.EOF:
		return received
	}
	return nil
}

// take reads a batch and has it carried out, or says why not.
func (s *Service) take(f *folds, m *pluginproto.FoldBatch) {
	j := job{number: m.Batch, generation: m.Generation, counted: s.flight.enter()}
	b, err := foldwire.ReadBatch(m)
	if err != nil {
		s.logger.Error("the host sent a batch that cannot be read", "batch", m.Batch, "reason", err.Error())
		b = unit.Batch{Drop: namedOnWire(m)}
	}
	if !j.counted {
		err = errDraining
	}
	f.submit(j, b, err)
}

var errDraining = errors.New("the plugin is draining; it takes no more batches")

// Drain implements the protocol.
func (s *Service) Drain(ctx context.Context, _ *pluginproto.DrainRequest) (*pluginproto.DrainResponse, error) {
	if err := s.flight.close(ctx); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	if err := s.Stop(ctx); err != nil {
		return nil, status.Error(codes.DeadlineExceeded, err.Error())
	}
	return &pluginproto.DrainResponse{}, nil
}

// Stop ends the instance, if there is one.
func (s *Service) Stop(ctx context.Context) error {
	s.mu.Lock()
	instance := s.instance
	s.mu.Unlock()
	if instance == nil {
		return nil
	}
	return instance.Stop(ctx)
}

func namedOnWire(m *pluginproto.FoldBatch) []unit.CellID {
	var ids []unit.CellID
	for _, list := range [][]uint64{m.Drop, m.Cells, m.States} {
		for _, id := range list {
			ids = append(ids, unit.CellID(id))
		}
	}
	for _, o := range m.Open {
		if o != nil {
			ids = append(ids, unit.CellID(o.Cell))
		}
	}
	return ids
}
