package storetest

import (
	"math"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/storetest/surface"
)

// measured returns the measurements of partition 0 with the times left out, after checking that they are not negative.
func (e *env) measured() store.Measurements {
	e.Helper()
	m := e.states()[0].Measurements
	strip := func(s *store.Sample) {
		if s.Lock < 0 || s.PreCommit < 0 {
			e.Fatalf("negative time: %+v", s)
		}
		s.Lock, s.PreCommit = 0, 0
	}
	strip(&m.Total)
	if m.Last != nil {
		strip(m.Last)
	}
	for i := range m.Recent {
		strip(&m.Recent[i])
	}
	return m
}

// commitWork commits one decision with that work.
func (e *env) commitWork(t store.Token, b *builder, w ledger.Work) {
	e.Helper()
	batch := b.one(widget)
	batch.Work = w
	e.ok(e.ns.Commit(e.ctx, t, batch))
}

var measureCases = []testCase{
	{"measure/SC42 there is none before the first commit", func(e *env) {
		e.claim(0)
		e.equal("measurements", e.measured(), store.Measurements{})
	}},
	{"measure/SC42 a commit is counted once", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		w := ledger.Work{Records: 1, Accepted: 2, Rejected: 3, RewindDays: 4, RefoldedDays: 5, Changed: 6, Withdrawn: 7}
		e.commitWork(o.Token, b, w)
		s := store.Sample{Work: w}
		e.equal("measurements", e.measured(), store.Measurements{Last: &s, Recent: []store.Sample{s}, Total: s, Commits: 1})
	}},
	{"measure/SC42 totals add up and the rewind is the largest", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		e.commitWork(o.Token, b, ledger.Work{Records: 1, RewindDays: 9, Changed: 5})
		e.commitWork(o.Token, b, ledger.Work{Records: 1, RewindDays: 2, Changed: 6})
		m := e.measured()
		e.equal("total", m.Total.Work, ledger.Work{Records: 2, RewindDays: 9, Changed: 11})
		e.equal("last", m.Last.Work, ledger.Work{Records: 1, RewindDays: 2, Changed: 6})
		e.equal("commits", m.Commits, int64(2))
	}},
	{"measure/SC42 fences, bare moves and claims leave them alone", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		e.commitWork(o.Token, b, ledger.Work{Records: 1, Accepted: 1})
		was := e.states()[0].Measurements
		b.offset = 5
		e.fails(e.ns.Commit(e.ctx, o.Token, b.one(widget)), store.ErrFence)
		e.ok(e.ns.Commit(e.ctx, o.Token, &ledger.Batch{Expected: 1, Next: 9, FirstSequence: 1, NextSequence: 1}))
		e.claim(0)
		e.equal("measurements", e.states()[0].Measurements, was)
	}},
	{"measure/SC42 the latest 32 samples are kept, oldest first", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		for i := range int64(store.MaxSamples + 3) {
			e.commitWork(o.Token, b, ledger.Work{Records: 1, Changed: i})
		}
		m := e.measured()
		e.equal("samples", len(m.Recent), store.MaxSamples)
		for i, s := range m.Recent {
			e.equal("sample", s.Work.Changed, int64(i+3))
		}
		e.equal("commits", m.Commits, int64(store.MaxSamples+3))
	}},
	{"measure/I16 rejected records are counted by their commits, not by each reader", func(e *env) {
		e.db.Forge(e, e.cfg.Namespace, surface.Totals, 41)
		o, b := e.claim(0), newBuilder(0)
		e.ok(e.ns.Commit(e.ctx, o.Token, b.batch(b.rejected(ledger.Malformed, nil, nil))))
		e.equal("rejected", e.states()[0].Rejected, int64(42))
	}},
	{"measure/SC42 totals saturate", func(e *env) {
		e.db.Forge(e, e.cfg.Namespace, surface.Totals, math.MaxInt64-1)
		o, b := e.claim(0), newBuilder(0)
		w := ledger.Work{Records: 2, Accepted: 2, Rejected: 2, RewindDays: 2, RefoldedDays: 2, Changed: 1, Withdrawn: 0}
		e.commitWork(o.Token, b, w)
		const most = math.MaxInt64
		m := e.states()[0].Measurements
		e.equal("total", m.Total.Work, ledger.Work{Records: most, Accepted: most, Rejected: most, RewindDays: most - 1, RefoldedDays: most,
			Changed: most, Withdrawn: most - 1})
		e.equal("commits", m.Commits, int64(most))
		e.commitWork(o.Token, b, w)
		e.equal("commits again", e.states()[0].Measurements.Commits, int64(most))
		e.equal("last", e.measured().Last.Work, w)
	}},
}
