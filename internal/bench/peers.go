package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"amends/bench/serial"
	"amends/bench/trigger"
	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/store"
)

// book is one stock key's history as the peers keep it.
type book struct {
	transactions map[string]ledger.Assertion // the authoritative ones
	rows         []store.ViewRow             // balances and alerts, withdrawn ones too
}

// books sorts the state by stock key.
func (st *state) books() map[ledger.StockKey]*book {
	m := make(map[ledger.StockKey]*book)
	for _, a := range st.assertions {
		b := m[a.Key]
		if b == nil {
			b = &book{transactions: make(map[string]ledger.Assertion)}
			m[a.Key] = b
		}
		if a.Revision > b.transactions[a.TxnID].Revision {
			b.transactions[a.TxnID] = a
		}
	}
	for _, r := range st.rows {
		if r.ID.Kind != ledger.TrustStatus {
			m[r.ID.Key].rows = append(m[r.ID.Key].rows, r)
		}
	}
	return m
}

// runTrigger seeds the trigger peer, runs it over the measured records and compares its closes with the view.
func (s *stand) runTrigger(ctx context.Context, name string, a *amends, st *state, o Options) (Speed, error) {
	url, err := s.database(ctx, "trigger_"+name)
	if err != nil {
		return Speed{}, err
	}
	books := st.books()
	keys := make([]ledger.StockKey, 0, len(books))
	for k := range books {
		keys = append(keys, k)
	}
	p, err := trigger.Open(ctx, url, a.manifest.Config, keys)
	if err != nil {
		return Speed{}, err
	}
	defer p.Close()
	for k, b := range books {
		movements, balances := b.seedTrigger()
		if err := p.Seed(ctx, k, movements, balances); err != nil {
			return Speed{}, err
		}
	}
	if err := p.Ready(ctx, st.frontiers); err != nil {
		return Speed{}, err
	}
	var done atomic.Int64
	began, spent := time.Now(), s.processorTime()
	limited, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	err = s.eachPartition(limited, a, st, func(ctx context.Context, recs []ledger.SourceRecord) error {
		for len(recs) > 0 {
			n := min(trigger.MaxBatch, len(recs))
			if err := p.Apply(ctx, recs[:n]); err != nil {
				return err
			}
			done.Add(int64(n))
			recs = recs[n:]
		}
		return nil
	})
	speed := Speed{Records: done.Load(), Elapsed: time.Since(began), Processor: s.processorTime() - spent}
	if limited.Err() != nil {
		return speed, ctx.Err()
	}
	if err != nil {
		return speed, err
	}
	return speed, a.compareCloses(ctx, p)
}

// seedTrigger returns the authoritative movements and the present closes.
func (b *book) seedTrigger() ([]trigger.Movement, []trigger.Balance) {
	active := make(map[ledger.Day]int32)
	movements := make([]trigger.Movement, 0, len(b.transactions))
	for _, a := range b.transactions {
		m := trigger.Movement{TxnID: a.TxnID, Revision: a.Revision, Day: a.Payload.Day, Delta: a.Payload.Units(), Active: a.Payload.State == ledger.Active}
		if m.Active {
			active[m.Day]++
		}
		movements = append(movements, m)
	}
	var balances []trigger.Balance
	for _, r := range b.rows {
		if r.ID.Kind == ledger.Balance && r.Present {
			balances = append(balances, trigger.Balance{Day: r.ID.Day, Close: r.Close, Movements: active[r.ID.Day]})
		}
	}
	return movements, balances
}

// seedSerial returns the key's state as the baseline keeps it.
func (b *book) seedSerial() *serial.State {
	s := &serial.State{Transactions: make(map[string]serial.Transaction, len(b.transactions)), Announced: true}
	for _, a := range b.transactions {
		s.Transactions[a.TxnID] = serial.Transaction{Revision: a.Revision, Day: a.Payload.Day, Delta: a.Payload.Units(), Active: a.Payload.State == ledger.Active}
	}
	for _, r := range b.rows {
		s.Outputs = append(s.Outputs, serial.Output{Kind: r.ID.Kind, Day: r.ID.Day, Version: r.Version, Present: r.Present, Close: r.Close, Previous: r.Previous})
	}
	return s
}

// eachPartition reads the measured records of every partition, side by side, and gives them to apply as they come.
func (s *stand) eachPartition(ctx context.Context, a *amends, st *state, apply func(context.Context, []ledger.SourceRecord) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for p := range ledger.Partition(a.manifest.Config.Partitions) {
		g.Go(func() error {
			return s.read(ctx, a.manifest.SourceTopic, a.manifest.Config.SourceIncarnation, p, st.frontiers[p], a.ends[p], apply)
		})
	}
	return g.Wait()
}

// read gives the records of a partition between two frontiers to apply, page by page.
func (s *stand) read(ctx context.Context, topic, incarnation string, p ledger.Partition, from, end ledger.Frontier, apply func(context.Context, []ledger.SourceRecord) error) error {
	r, err := broker.NewReader(s.options, topic, incarnation)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := r.Seek(ctx, p, from); err != nil {
		return err
	}
	for from < end {
		pages, err := r.Poll(ctx)
		if err != nil {
			return err
		}
		for _, page := range pages {
			if err := apply(ctx, page.Records); err != nil {
				return err
			}
			from = page.Next
		}
	}
	return nil
}

// compareCloses compares every close of the trigger peer with the view of amends.
func (a *amends) compareCloses(ctx context.Context, p *trigger.Pipeline) error {
	closes := make(map[ledger.OutputID]int64)
	final, err := a.state(ctx)
	if err != nil {
		return err
	}
	for _, r := range final.rows {
		if r.Present && r.ID.Kind == ledger.Balance {
			closes[r.ID] = r.Close
		}
	}
	var failure error
	err = p.Balances(ctx, func(k ledger.StockKey, b trigger.Balance) {
		id := ledger.OutputID{Key: k, Day: b.Day, Kind: ledger.Balance}
		if got, ok := closes[id]; (!ok || got != b.Close) && failure == nil {
			failure = &DifferentError{Peer: "trigger", Detail: fmt.Sprintf("%q %v: amends %d (present %v), trigger %d", k, b.Day, got, ok, b.Close)}
		}
		delete(closes, id)
	})
	if err == nil && failure == nil && len(closes) > 0 {
		failure = &DifferentError{Peer: "trigger", Detail: fmt.Sprintf("%d closes are missing", len(closes))}
	}
	return errors.Join(err, failure)
}
