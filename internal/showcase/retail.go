package showcase

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/phrase"
	"amends/internal/store"
	"amends/internal/workload"
)

// Retail is a retail history told on a pipeline. Say prints one line, Progress replaces the last one on a terminal.
type Retail struct {
	Pipeline Pipeline
	Data     *workload.Dataset
	Say      func(line string)
	Progress func(line string)
	Dir      string
}

// RetailScenario is the namespace of a retail data set. Two different data sets never share one: name tells them apart.
func RetailScenario(name string, data *workload.Dataset) Scenario {
	return Scenario{Name: name, Config: func(incarnation string) (*manifest.Config, error) { return data.Setting.Config(name, incarnation) }}
}

// Tell loads what the source topic lacks, waits for the view, says what the cancellations repaired and verifies.
func (r *Retail) Tell(ctx context.Context) (*Result, error) {
	began := time.Now()
	ends, err := r.Pipeline.Ends(ctx)
	if err != nil {
		return nil, fmt.Errorf("read source ends: %w", err)
	}
	result := &Result{}
	want, err := r.load(ctx, ends)
	if err != nil {
		return nil, fmt.Errorf("load retail history: %w", err)
	}
	if err := await(ctx, r.Pipeline, want, func(records, outputs int64) {
		r.Progress(fmt.Sprintf("%d of %d records decided, %d outputs in the view", records, len(r.Data.Assertions), outputs))
	}); err != nil {
		return nil, err
	}
	r.Progress("") // the next line may be shorter
	took := time.Since(began)
	result.Timings = append(result.Timings, Timing{"load", took})
	tally, err := r.tally(ctx)
	if err != nil {
		return nil, err
	}
	for _, line := range tally.lines(took) {
		r.Say(line)
	}
	began = time.Now()
	if result.Report, err = r.Pipeline.Verify(ctx); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	result.Timings = append(result.Timings, Timing{"verify", time.Since(began)})
	return result, result.read(ctx, r.Pipeline)
}

// load publishes the assertions that the topic does not hold yet and returns the ends to wait for. The history is the
// same on every run, so a partition holds a prefix of its part.
func (r *Retail) load(ctx context.Context, have []ledger.Offset) ([]ledger.Offset, error) {
	ends := make([]ledger.Offset, len(have))
	f, err := os.CreateTemp(r.Dir, "retail-*.jsonl")
	if err != nil {
		return nil, fmt.Errorf("write records: %w", err)
	}
	defer os.Remove(f.Name())
	partitions := make(map[ledger.StockKey]ledger.Partition, len(r.Data.Setting.Keys))
	for _, k := range r.Data.Setting.Keys {
		partitions[k.Key] = k.Partition
	}
	w := bufio.NewWriter(f)
	var line []byte
	missing := 0
	for _, a := range r.Data.Assertions {
		p := partitions[a.Key]
		ends[p]++
		if ends[p] <= have[p] {
			continue
		}
		missing++
		line = workload.AppendLine(line[:0], a)
		if _, err := w.Write(line); err != nil {
			return nil, errors.Join(fmt.Errorf("write records: %w", err), f.Close())
		}
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return nil, fmt.Errorf("write records: %w", err)
	}
	if missing == 0 {
		return ends, nil
	}
	r.Progress(fmt.Sprintf("loading %d records", missing))
	return ends, r.Pipeline.Load(ctx, f.Name())
}

// tally is what the journal says of a history.
type tally struct {
	records, outputs, corrections, repaired, withdrawn int64
	widest                                             int
	widestCause                                        ledger.Assertion
}

func (r *Retail) tally(ctx context.Context) (*tally, error) {
	t := &tally{}
	err := r.Pipeline.Snapshot(ctx, func(s store.Snapshot) error {
		for p := range ledger.Partition(r.Data.Setting.Partitions) {
			if err := s.Journal(ctx, p, t.count); err != nil {
				return err
			}
		}
		return nil
	})
	return t, err
}

func (t *tally) count(d *ledger.Decision) error {
	t.records++
	t.outputs += int64(len(d.Changes))
	if d.Assertion.Revision < 2 {
		return nil
	}
	t.corrections++
	closes := 0
	for _, c := range d.Changes {
		if c.Kind == ledger.Balance {
			closes++
		}
		if !c.Present {
			t.withdrawn++
		}
	}
	t.repaired += int64(closes)
	if closes > t.widest {
		t.widest, t.widestCause = closes, d.Assertion
	}
	return nil
}

func (t *tally) lines(took time.Duration) []string {
	rate := float64(t.records) / max(took.Seconds(), 0.001)
	lines := []string{
		fmt.Sprintf("%s, %s, in the view after %s (%.0f records/s)", phrase.Counted(t.records, "record"), phrase.Counted(t.outputs, "message"), brief(took), rate),
		fmt.Sprintf("%s repaired %s and withdrew %s", phrase.Counted(t.corrections, "correction"), phrase.Counted(t.repaired, "published close"), phrase.Counted(t.withdrawn, "output")),
	}
	if t.widest > 0 {
		lines = append(lines, fmt.Sprintf("the widest: %q at %q, transaction %q revision %d: %s in one repair",
			t.widestCause.Key.Item, t.widestCause.Key.Location, t.widestCause.TxnID, t.widestCause.Revision, phrase.Counted(t.widest, "close")))
	}
	return lines
}
