package sqlite

import "testing"

func TestStatsSayWhatIsThere(t *testing.T) {
	s := stocked(t)
	swept(t, s)
	mustAdd(t, s, "staged", row(2103, 1)...)
	st, err := s.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context(), "staged")
	if err != nil {
		t.Fatal(err)
	}
	if st.Logs != 3 || st.Events != 12+2104 || st.Position != info.Position || st.Deleted != 0 {
		t.Errorf("%+v, the last commit is at %d", st, info.Position)
	}
	if st.Bytes < 4096 || st.WAL < 4096 || st.Changes < 9 || st.Groups < 9 || st.Syncs < st.Groups {
		t.Errorf("%+v", st)
	}
}
