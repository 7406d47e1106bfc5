package drill

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"amends/internal/pace"
)

// The sizes of drills, by environment; the defaults are a smoke.
const (
	cyclesEnv  = "AMENDS_DRILL_CYCLES"  // kill -9 cycles of the two loops together
	zombiesEnv = "AMENDS_DRILL_ZOMBIES" // processes stopped past their takeover
	killsEnv   = "AMENDS_DRILL_KILLS"   // kills of a worker under each group protocol (SC22 says ten)
	outageEnv  = "AMENDS_DRILL_OUTAGE"  // how long a broker stays away (C30 says ten minutes)
	wholeEnv   = "AMENDS_DRILL_WHOLE"   // 1: both halves of what the smoke runs every second case of
	seedEnv    = "AMENDS_DRILL_SEED"    // of the choices; chosen and printed unless given
)

// deadline is how long anything that should happen soon may take on a busy machine.
const deadline = 90 * time.Second

func TestMain(m *testing.M) {
	if spec := os.Getenv(forwardEnv); spec != "" {
		os.Exit(forward(spec))
	}
	os.Exit(m.Run())
}

// short tells whether to run the smallest drills.
func short() bool { return testing.Short() || pace.Raced }

// size is a number of the environment, or the smoke's, or with -short and under the race detector a smaller one.
func size(t testing.TB, env string, smoke, least int) int {
	t.Helper()
	text := os.Getenv(env)
	switch {
	case text == "" && short():
		return least
	case text == "":
		return smoke
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number of 1 or more", env, text)
	}
	return n
}

// span is a duration of the environment, or the smoke's.
func span(t testing.TB, env string, smoke time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return smoke
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("%s=%q: want a duration", env, text)
	}
	return d
}

// figure prints a number that somebody wants to read, unless the test has failed: `make robust` gathers these lines.
func figure(t testing.TB, format string, args ...any) {
	t.Helper()
	if t.Failed() {
		return
	}
	t.Logf("figure: %s: "+format, append([]any{t.Name()}, args...)...)
}

// spread writes durations as least, middle and most.
func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	s := slices.Sorted(slices.Values(d))
	return fmt.Sprintf("%d measured, %.1f s least, %.1f s median, %.1f s most", len(s), s[0].Seconds(), s[len(s)/2].Seconds(), s[len(s)-1].Seconds())
}

// within writes durations, and how many of them were below what they should be.
func within(took []time.Duration, aim time.Duration) string {
	n := 0
	for _, d := range took {
		if d < aim {
			n++
		}
	}
	return fmt.Sprintf("%s; %d of them under %v", spread(took), n, aim)
}

// await polls until the condition holds and returns how long that took.
func await(t testing.TB, what string, holds func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > deadline {
			t.Fatalf("after %v still not: %s", deadline, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(began)
}
