package sim

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"amends/internal/pace"
	"amends/internal/sim/choice"
	"amends/internal/sim/fault"
)

// exhaustive is the number of schedules from which on the larger of the exhaustive models run too.
const exhaustive = 100_000

// schedules returns how many seeded schedules the tests run: AMENDS_SIM_SCHEDULES, or 4,000 and fewer at a slow pace.
func schedules(t testing.TB) int {
	t.Helper()
	v := os.Getenv("AMENDS_SIM_SCHEDULES")
	if v == "" {
		return pace.Of(4_000)
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("AMENDS_SIM_SCHEDULES=%s is no number of schedules", v)
	}
	return n
}

func testCorpus(t testing.TB) *Corpus {
	t.Helper()
	c, err := NewCorpus()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What failed once is played before anything else.
func TestRegressions(t *testing.T) {
	corpus := testCorpus(t)
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			s, err := choice.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			r, err := corpus.Play(choice.Replay(s.Answers), true)
			if err != nil {
				t.Fatal(err)
			}
			if r.Violation != nil {
				t.Errorf("%s\n%v\n%s", s.Note, r.Violation, strings.Join(r.Trace, "\n"))
			}
		})
	}
}

// The same answers give the same trace, whether they come from a seed or from a list.
func TestSchedulesReplay(t *testing.T) {
	corpus := testCorpus(t)
	for seed := range uint64(pace.Of(200)) {
		first, err := corpus.Play(choice.Random(seed), false)
		if err != nil {
			t.Fatal(err)
		}
		again, err := corpus.Play(choice.Replay(first.Answers), true)
		if err != nil {
			t.Fatal(err)
		}
		if first.Hash != again.Hash || first.Events != again.Events {
			t.Fatalf("seed %d: trace %x of %d events, replayed %x of %d", seed, first.Hash, first.Events, again.Hash, again.Events)
		}
	}
}

// Answers of all zeros are a schedule without trouble.
func TestZerosAreNoTrouble(t *testing.T) {
	r, err := testCorpus(t).Play(choice.Replay(nil), false)
	if err != nil || r.Violation != nil {
		t.Fatal(err, r.Violation)
	}
	for k := range fault.Kinds {
		if k != fault.Transaction && r.Faults[k] > 0 {
			t.Errorf("%s %d", k, r.Faults[k])
		}
	}
}

func BenchmarkSchedule(b *testing.B) {
	corpus := testCorpus(b)
	pick := choice.Random(0)
	for seed := uint64(0); b.Loop(); seed++ {
		pick.Reset(seed)
		if r, err := corpus.Play(pick, false); err != nil || r.Violation != nil {
			b.Fatal(err, r.Violation)
		}
	}
}
