package corpus

import "encoding/json"

// Expected are the right results for one log.
type Expected struct {
	// Accepted is true for every log of this kind.
	Accepted bool  `json:"accepted"`
	Count    int64 `json:"events"`
	Surface  struct {
		Nodes             []int64       `json:"nodes"`
		ReplaceGeneration int64         `json:"replaceGeneration"`
		Replacements      []Replacement `json:"replacements"`
	} `json:"surface"`
	Messages struct {
		Count int64 `json:"count"`
		List  []struct {
			Role string `json:"role"`
			ID   string `json:"id"`
		} `json:"list"`
	} `json:"messages"`
	// Closers are the types of the events that close the whole log, CloserEvents the events themselves.
	Closers         []string          `json:"closers"`
	CloserEvents    []json.RawMessage `json:"closerEvents"`
	ClosersByPrefix []struct {
		// From and To are the first and the last number of events for which Types holds. There a tool/result carries its
		// error code after a colon.
		From  int64    `json:"from"`
		To    int64    `json:"to"`
		Types []string `json:"types"`
	} `json:"closersByPrefix"`
	Changes []struct {
		Key   string          `json:"key"`
		Seq   int64           `json:"seq"`
		Value json.RawMessage `json:"value"`
	} `json:"changes"`
	AsOfSeq int64                      `json:"asOfSeq"`
	Values  map[string]json.RawMessage `json:"values"`
	Cuts    []Cut                      `json:"cuts"`
	Rows    map[string]struct {
		Ver int64           `json:"ver"`
		Seq int64           `json:"seq"`
		Val json.RawMessage `json:"val"`
	} `json:"rows"`
	Forks []Fork `json:"forks"`
	// PackedRows is how many packed rows an export makes, by type.
	PackedRows map[string]int `json:"packedRows"`
}

// Replacement is one replacement in the history of a surface.
type Replacement struct {
	Seq          int64   `json:"seq"`
	Start        int64   `json:"start"`
	End          int64   `json:"end"`
	ShadowedSeqs []int64 `json:"shadowedSeqs"`
}

// Fork is what a fork at a boundary gives: a child, or the error code of the program that recorded the logs.
type Fork struct {
	// Boundary is an inclusive seq, or the string "omitted".
	Boundary   json.RawMessage `json:"boundary"`
	OK         bool            `json:"ok"`
	Code       string          `json:"code"`
	SeedLength int64           `json:"seedLength"`
	LastType   string          `json:"lastType"`
	Nodes      int64           `json:"nodes"`
}

// Cut is the values as of another seq than the last.
type Cut struct {
	At     int64                      `json:"at"`
	Values map[string]json.RawMessage `json:"values"`
}
