package registry

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestABlockHasOneFixedShape(t *testing.T) {
	for name, c := range map[string]struct {
		block Block
		want  string
	}{
		"an empty log without units": {
			Block{Epoch: "s.1", Gen: 3, AsOfSeq: -1},
			`{"epoch":"s.1","gen":3,"asOfSeq":-1,"values":{},"revs":{}}`,
		},
		"keys are sorted": {
			Block{Epoch: "s.1", AsOfSeq: 7,
				Values: map[string]json.RawMessage{"b": json.RawMessage(`2`), "a": json.RawMessage(`[1]`)},
				Revs:   map[string]int64{"b": 9, "a": 4}},
			`{"epoch":"s.1","gen":0,"asOfSeq":7,"values":{"a":[1],"b":2},"revs":{"a":4,"b":9}}`,
		},
		"values stand byte for byte": {
			Block{Values: map[string]json.RawMessage{"a": json.RawMessage(`{"z":"<&>\u003c","a":1.0}`)}, Revs: map[string]int64{"a": 1}},
			`{"epoch":"","gen":0,"asOfSeq":0,"values":{"a":{"z":"<&>\u003c","a":1.0}},"revs":{"a":1}}`,
		},
		"unavailable keys say why": {
			Block{Unavailable: map[string]Unavailable{
				"y": {Code: Faulted, Seq: 5, Message: `no "x" here <`},
				"x": {Code: Parked, Seq: -1},
			}},
			`{"epoch":"","gen":0,"asOfSeq":0,"values":{},"revs":{},"unavailable":{"x":{"code":"parked","seq":-1,"message":""},"y":{"code":"faulted","seq":5,"message":"no \"x\" here <"}}}`,
		},
		"a look into the past is marked": {
			Block{AsOfSeq: 2, Historical: true},
			`{"epoch":"","gen":0,"asOfSeq":2,"historical":true,"values":{},"revs":{}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(c.block.AppendJSON([]byte("x"))); got != "x"+c.want {
				t.Errorf("AppendJSON = %s\nwant         x%s", got, c.want)
			}
		})
	}
}

func TestABlockCannotBeMarshalledByAccident(t *testing.T) {
	if _, err := json.Marshal(Block{}); err == nil {
		t.Error("encoding/json took a block; it would rewrite its values")
	}
	if _, err := json.Marshal(struct{ B *Block }{&Block{}}); err == nil {
		t.Error("encoding/json took a block within a struct")
	}
}

func TestABlockIsJSONWhateverItHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.MapOf(rapid.String(), rapid.Map(rapid.String(), func(s string) json.RawMessage {
			raw, _ := json.Marshal(s)
			return raw
		})).Draw(t, "values")
		block := Block{Epoch: rapid.String().Draw(t, "epoch"), Values: values, Revs: map[string]int64{}, Unavailable: map[string]Unavailable{
			rapid.String().Draw(t, "key"): {Message: rapid.String().Draw(t, "message")},
		}}
		var back struct {
			Epoch       string
			Values      map[string]json.RawMessage
			Unavailable map[string]struct{ Message string }
		}
		out := block.AppendJSON(nil)
		if err := json.Unmarshal(out, &back); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if back.Epoch != block.Epoch || len(back.Values) != len(values) {
			t.Fatalf("%s came back as %+v", out, back)
		}
		for k, v := range values {
			if string(back.Values[k]) != string(v) {
				t.Fatalf("value of %q came back as %s, was %s", k, back.Values[k], v)
			}
		}
		for k, u := range block.Unavailable {
			if back.Unavailable[k].Message != u.Message {
				t.Fatalf("message of %q came back as %q, was %q", k, back.Unavailable[k].Message, u.Message)
			}
		}
	})
}

func BenchmarkBlockAppendJSON(b *testing.B) {
	block := Block{Epoch: "0123456789abcdef.12", Values: map[string]json.RawMessage{}, Revs: map[string]int64{}}
	for _, k := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		block.Values[k], block.Revs[k] = json.RawMessage(`[{"content":"write it down","status":"pending"}]`), 1
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = block.AppendJSON(buf[:0])
	}
}
