package session

import "context"

// turnContext is the context that hooks, observers and drives of one session are called with. It carries the session, so that
// a change of that session from inside the call is told apart from one that may wait its turn.
type turnContext struct {
	context.Context
	s *Session
}

type turnKey struct{}

func (t *turnContext) Value(key any) any {
	if key == (turnKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// within says whether ctx comes from inside a turn of this life of the session. Turns nest (a hook of one session may append to another), so all of them
// are looked at.
func (s *Session) within(ctx context.Context) bool {
	for {
		t, ok := ctx.Value(turnKey{}).(*turnContext)
		if !ok {
			return false
		}
		if t.s.id == s.id && t.s.incarnation == s.incarnation && t.s.set == s.set {
			return true
		}
		ctx = t.Context
	}
}

// hookContext ends with the append that asks; publishContext does not, because what is committed is published whoever has left.
func (s *Session) hookContext(ctx context.Context) context.Context {
	return &turnContext{Context: ctx, s: s}
}

func (s *Session) publishContext(ctx context.Context) context.Context {
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return &turnContext{Context: ctx, s: s}
}
