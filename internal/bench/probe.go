package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/worker"
	"amends/internal/workload"
)

// Correction is what one correction of a key's first movement takes, from the record's bytes to the acknowledged commit,
// with the key in memory: the median and the worst of Runs.
type Correction struct {
	Movements int           `json:"later_movements"`
	Days      int           `json:"days"` // that they lie on
	Outputs   int64         `json:"outputs"`
	Runs      int           `json:"runs"`
	Median    time.Duration `json:"median_ns"`
	Worst     time.Duration `json:"worst_ns"`
}

// Takeover is the time from a claim, with nothing in memory, to the first commit, with Transactions behind it on the
// partition: where the first commit holds one record, and where it holds a whole batch that needs every key.
type Takeover struct {
	Transactions int           `json:"transactions"`
	Keys         int           `json:"keys"`
	Runs         int           `json:"runs"`
	One          time.Duration `json:"one_record_ns"` // median
	Batch        time.Duration `json:"batch_ns"`      // median
	BatchRecords int           `json:"batch_records"`
}

const (
	correctionRuns = 15
	takeoverRuns   = 5
)

// measureCorrection corrects the first of a key's movements, which lie on so many days one after the other.
func (s *stand) measureCorrection(ctx context.Context, movements, days int) (*Correction, error) {
	s.say(fmt.Sprintf("correction: writing %d movements on %d days", movements+1, days))
	key := ledger.StockKey{Item: "item", Location: "place"}
	origin, _ := ledger.DateOf(2026, 1, 1)
	threshold := int64(60)
	y, err := s.newYard(ctx, fmt.Sprintf("correction_%d", days), workload.Setting{Origin: origin, Partitions: 1,
		Keys: []manifest.StockKey{{Key: key, Terms: manifest.Terms{Threshold: &threshold}}}})
	if err != nil {
		return nil, err
	}
	defer y.db.Close()
	at := -1
	receipt := func(n int, revision, quantity int) ledger.Assertion {
		return ledger.Assertion{Key: key, TxnID: fmt.Sprintf("T-%06d", n), Revision: ledger.Revision(revision),
			Payload: ledger.Payload{State: ledger.Active, Kind: ledger.Receipt, Quantity: ledger.Quantity(quantity), Day: origin + ledger.Day(n*days/(movements+1))}}
	}
	_, err = y.commit(ctx, movements+1, func() ledger.Assertion { at++; return receipt(at, 1, 1+at%20) })
	if err != nil {
		return nil, fmt.Errorf("write movements: %w", err)
	}
	c := &Correction{Movements: movements, Days: days, Runs: correctionRuns}
	var took []time.Duration
	for run := range correctionRuns {
		before := y.outputs()
		d, err := y.commit(ctx, 1, func() ledger.Assertion { return receipt(0, 2+run, 100+run) })
		if err != nil {
			return nil, fmt.Errorf("correct: %w", err)
		}
		c.Outputs, took = y.outputs()-before, append(took, d)
	}
	c.Median, c.Worst = median(took), slices.Max(took)
	return c, nil
}

// measureTakeover claims a partition again and again, each time with nothing in memory.
func (s *stand) measureTakeover(ctx context.Context, transactions int) (*Takeover, error) {
	keys := max(transactions/2_000, 1)
	stream := workload.NewStream(workload.StreamOptions{Law: workload.LongShallow, Keys: keys, PerKey: transactions / keys})
	set := stream.Setting()
	set.Partitions = 1
	for i := range set.Keys {
		set.Keys[i].Partition = 0
	}
	s.say(fmt.Sprintf("takeover: writing %d transactions", stream.History()))
	y, err := s.newYard(ctx, "takeover", set)
	if err != nil {
		return nil, err
	}
	defer y.db.Close()
	if _, err := y.commit(ctx, stream.History(), stream.Next); err != nil {
		return nil, fmt.Errorf("write history: %w", err)
	}
	t := &Takeover{Transactions: stream.History(), Keys: keys, Runs: takeoverRuns, BatchRecords: worker.BatchRecords}
	first := func(records int) (time.Duration, error) {
		var took []time.Duration
		for range takeoverRuns {
			began := time.Now()
			if err := y.takeOver(ctx); err != nil {
				return 0, fmt.Errorf("claim: %w", err)
			}
			claimed := time.Since(began)
			d, err := y.commit(ctx, records, stream.Next)
			if err != nil {
				return 0, fmt.Errorf("commit after a claim: %w", err)
			}
			took = append(took, claimed+d)
		}
		return median(took), nil
	}
	if t.One, err = first(1); err != nil {
		return nil, err
	}
	t.Batch, err = first(worker.BatchRecords)
	return t, err
}

// median returns the middle one, the lower of two.
func median(d []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[(len(sorted)-1)/2]
}
