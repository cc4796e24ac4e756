package api

// scope is what a call asks of its caller. The zero value is held by nobody, so that a call without one is served to nobody.
type scope uint8

const (
	// scopeOpen asks nothing: whether the server lives is no secret, and who asks for it has no token.
	scopeOpen scope = iota + 1
	// scopeKnown is held with every token: what is behind it is the same for everybody, as that there is nothing.
	scopeKnown
	// scopeRead: what is in sessions, and streams of it. scopeAppend: what adds to them. scopeAdmin: what takes away, what costs, and what tells of the server itself.
	scopeRead
	scopeAppend
	scopeAdmin
)

// named are the scopes that a token file gives.
var named = map[string]scope{"read": scopeRead, "append": scopeAppend, "admin": scopeAdmin}

func (s scope) String() string {
	for name, one := range named {
		if one == s {
			return name
		}
	}
	return "none"
}

// scopes is a set of them.
type scopes uint8

// anonymous is held by everybody, everything by everybody where there are no tokens.
const (
	anonymous  scopes = 1 << scopeOpen
	everything scopes = 1<<scopeOpen | 1<<scopeKnown | 1<<scopeRead | 1<<scopeAppend | 1<<scopeAdmin
)

func (s scopes) has(one scope) bool { return s&(1<<one) != 0 }
