package showcase

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"amends/fixtures"
	"amends/internal/ledger"
	"amends/internal/phrase"
	"amends/internal/store"
	"amends/internal/verify"
)

// Result is what a demo ended with.
type Result struct {
	Report   *verify.Report
	States   []store.PartitionState
	Balances []store.ViewRow // present ones
	Alerts   []store.ViewRow // present ones
	Timings  []Timing
}

// Timing is how long a step took, from the first byte sent to the broker until the view showed the last repair.
type Timing struct {
	Step    string
	Elapsed time.Duration
}

// Story is the worked example told on a pipeline. Dir is where its files may be written; Say prints one line.
type Story struct {
	Pipeline Pipeline
	Say      func(line string)
	Dir      string
}

// step is one part of the story: the records of a fixture, at source offsets first and on.
type step struct {
	name    string
	records string
	intro   string
	tell    func(*scene) []string
	first   int
}

// Tell loads what the source topic lacks of the worked example and tells each step from the journal, so that a second
// run tells the same; then it verifies. A verification that is not PASS is in the result, and is no error.
func (s *Story) Tell(ctx context.Context) (*Result, error) {
	ends, err := s.Pipeline.Ends(ctx)
	if err != nil {
		return nil, fmt.Errorf("read source ends: %w", err)
	}
	r := &Result{}
	for _, st := range steps() {
		took, err := s.load(ctx, st, int(ends[0]))
		if err != nil {
			return nil, fmt.Errorf("tell %s: %w", st.name, err)
		}
		if took > 0 {
			r.Timings = append(r.Timings, Timing{st.name, took})
		}
		if err := s.tell(ctx, st, took); err != nil {
			return nil, fmt.Errorf("tell %s: %w", st.name, err)
		}
	}
	began := time.Now()
	if r.Report, err = s.Pipeline.Verify(ctx); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	r.Timings = append(r.Timings, Timing{"verify", time.Since(began)})
	return r, r.read(ctx, s.Pipeline)
}

func steps() []step {
	return []step{
		{name: "movements", records: fixtures.Before, first: 0, tell: (*scene).published},
		{name: "correction", records: fixtures.Correction, first: 3, tell: (*scene).repaired,
			intro: "A correction arrives: the receipt of day 1 was 70, not 100"},
		{name: "cancellation", records: fixtures.CancelLastDay, first: 4, tell: (*scene).repaired, intro: "The issue of day 3 is cancelled"},
	}
}

// load publishes the step's records from offset end on and waits for the view; it returns 0 when there was nothing to load.
func (s *Story) load(ctx context.Context, st step, end int) (time.Duration, error) {
	lines := strings.SplitAfter(strings.TrimSuffix(st.records, "\n"), "\n")
	have := max(end-st.first, 0)
	if have >= len(lines) {
		return 0, nil
	}
	f, err := os.CreateTemp(s.Dir, "story-*.jsonl")
	if err != nil {
		return 0, fmt.Errorf("write records: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(strings.Join(lines[have:], ""))
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, fmt.Errorf("write records: %w", err)
	}
	began := time.Now()
	if err := s.Pipeline.Load(ctx, filepath.Clean(f.Name())); err != nil {
		return 0, err
	}
	ends := []ledger.Offset{ledger.Offset(st.first + len(lines)), 0}
	if err := await(ctx, s.Pipeline, ends, func(int64, int64) {}); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// tell prints a step from the journal, with the time it took where it was loaded just now.
func (s *Story) tell(ctx context.Context, st step, took time.Duration) error {
	sc, err := readScene(ctx, s.Pipeline, ledger.Offset(st.first), strings.Count(st.records, "\n"))
	if err != nil {
		return err
	}
	if st.intro != "" {
		s.Say(st.intro)
	}
	lines := st.tell(sc)
	if took > 0 {
		lines[len(lines)-1] += fmt.Sprintf("    %s, %s", phrase.Counted(sc.outputs, "message"), brief(took))
	}
	for _, line := range lines {
		s.Say(line)
	}
	s.Say("")
	return nil
}

// read takes the view's rows and positions from one snapshot.
func (r *Result) read(ctx context.Context, p Pipeline) error {
	return p.Snapshot(ctx, func(s store.Snapshot) (err error) {
		if r.States, err = s.Partitions(ctx); err != nil {
			return err
		}
		for _, state := range r.States {
			err := s.ViewRows(ctx, state.Partition, func(row store.ViewRow) error {
				switch {
				case row.Present && row.ID.Kind == ledger.Balance:
					r.Balances = append(r.Balances, row)
				case row.Present && row.ID.Kind == ledger.Alert:
					r.Alerts = append(r.Alerts, row)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
