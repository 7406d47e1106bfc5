package delivery

import (
	"log/slog"
	"testing"

	"amends/internal/store"
)

// A service waits for its topic whatever its partitions do, and for what each of them waits for, each cause once; standby and
// stopped partitions wait for nothing.
func TestServiceSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	s := newService(store.View, Topic{Partitions: 4}, nil, slog.New(slog.DiscardHandler), nil, nil)
	want := func(words string) {
		t.Helper()
		if got := s.Waits(); got != words {
			t.Errorf("waits for %q, want %q", got, words)
		}
	}
	want("") // all on standby
	s.set(0, Running, "", 1)
	s.set(1, Stopped, "another namespace", 0)
	want("")
	s.set(2, Waiting, "database away", 0)
	s.set(3, Waiting, "database away", 0)
	want("database away")
	s.reachable("broker away")
	want("broker away; database away")
	s.set(2, Running, "", 0)
	s.set(3, Standby, "", 0)
	want("broker away")
	s.reachable("")
	want("")
}
