package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// CallTool implements the protocol.
func (s *Service) CallTool(ctx context.Context, m *pluginproto.CallToolRequest) (*pluginproto.CallToolResponse, error) {
	instance, err := s.running()
	if err != nil {
		return nil, err
	}
	if !s.flight.enter() {
		return failure("the plugin is stopping"), nil
	}
	defer s.flight.leave()
	_, tools, _ := instance.Offer()
	for i := range tools {
		if tools[i].Name == m.Tool {
			return s.call(ctx, &tools[i], m)
		}
	}
	return failure(fmt.Sprintf("the plugin has no tool %q", m.Tool)), nil
}

func (s *Service) call(ctx context.Context, t *unit.Tool, m *pluginproto.CallToolRequest) (*pluginproto.CallToolResponse, error) {
	in := unit.ToolCall{Session: m.Session, Arguments: m.Arguments, Seq: m.Seq, Values: make(map[string]json.RawMessage, len(m.Values))}
	for _, v := range m.Values {
		in.Values[v.GetKey()] = v.GetView()
	}
	out, err := t.Call(ctx, in)
	switch {
	case ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err()
	case err != nil:
		return failure(err.Error()), nil
	}
	success := &pluginproto.ToolSuccess{Text: strings.ToValidUTF8(out.Text, "�"), Value: out.Value}
	for _, e := range out.Events {
		success.Events = append(success.Events, &pluginproto.NewEvent{Type: e.Type, Data: e.Data, Ignorable: e.Ignorable})
	}
	answer := &pluginproto.CallToolResponse{Outcome: &pluginproto.CallToolResponse_Success{Success: success}}
	if size := proto.Size(answer); size > pluginproto.MaxMessageBytes {
		s.logger.Error("a tool's answer is larger than a message", "tool", t.Name, "bytes", size, "limit", pluginproto.MaxMessageBytes)
		return failure(fmt.Sprintf("the tool's answer has %d bytes; a message carries %d at most", size, pluginproto.MaxMessageBytes)), nil
	}
	return answer, nil
}

func failure(message string) *pluginproto.CallToolResponse {
	return &pluginproto.CallToolResponse{Outcome: &pluginproto.CallToolResponse_Failure{Failure: &pluginproto.ToolFailure{Message: text(message)}}}
}

func toolMessage(t *unit.Tool) *pluginproto.Tool {
	m := &pluginproto.Tool{
		Name: t.Name, Description: text(t.Description),
		ArgumentSchema: t.ArgumentSchema, ResultSchema: t.ResultSchema,
		Reads: t.Reads,
	}
	if t.Retry == unit.RetryNever {
		m.Retry = pluginproto.Retry_RETRY_NEVER
	}
	return m
}

// maxText bounds a text for people and models. 64 KiB: a description may be long, a stack does not belong in it.
const maxText = 64 << 10

// text makes what a protobuf string can carry.
func text(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + " …"
	}
	return strings.ToValidUTF8(s, "�")
}
