package audit

import (
	"testing"
	"time"

	"amends/internal/ledger"
)

// Where every cycle is a full one, full ones take a tenth of the time at most, and are no further apart than they always are.
func TestPauseLeavesTimeBetweenFullCycles(t *testing.T) {
	t.Parallel()
	full := map[string]func(*Auditor){
		"something differs":            func(a *Auditor) { a.drifted[0] = true },
		"a verification found it":      func(a *Auditor) { a.doubted = true },
		"the last established nothing": func(a *Auditor) { a.why = "it is due" },
	}
	for name, set := range full {
		for _, c := range []struct{ took, want time.Duration }{
			{100 * time.Millisecond, 9900 * time.Millisecond}, {3 * time.Second, 27 * time.Second}, {10 * time.Minute, 50 * time.Minute}, {2 * time.Hour, 0},
		} {
			a := &Auditor{Options: Options{Every: 10 * time.Second, FullEvery: time.Hour}, took: c.took, drifted: map[ledger.Partition]bool{}}
			set(a)
			if got := a.pause(c.took); got != c.want {
				t.Errorf("%s, after %v: %v, want %v", name, c.took, got, c.want)
			}
		}
	}
	a := &Auditor{Options: Options{Every: 10 * time.Second, FullEvery: time.Hour}, took: 3 * time.Second}
	if got := a.pause(time.Second); got != 9*time.Second {
		t.Errorf("after a cycle that found everything equal: %v", got)
	}
}
