package storetest

import (
	"math"
	"sync"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/storetest/surface"
)

var initCases = []testCase{
	{"init/again gives the same namespace", func(e *env) {
		e.claim(0)
		again := e.init(e.cfg)
		o, err := again.Observe(e.ctx, 0)
		e.ok(err)
		e.equal("epoch", o.Token.Epoch, ledger.Epoch(1))
	}},
	{"init/SC29 another threshold is refused", func(e *env) {
		other := *e.cfg
		sixtyOne := int64(61)
		other.StockKeys = []manifest.StockKey{{Key: widget, Partition: 0, Terms: manifest.Terms{Threshold: &sixtyOne}}}
		_, err := e.db.Init(e.ctx, &other, "topic-"+e.cfg.Namespace)
		e.fails(err, store.ErrConfig)
		_, err = e.db.Namespace(e.ctx, &other)
		e.fails(err, store.ErrConfig)
	}},
	{"init/SC29 another partition count is refused", func(e *env) {
		other := *e.cfg
		other.Partitions = 3
		_, err := e.db.Init(e.ctx, &other, "topic-"+e.cfg.Namespace)
		e.fails(err, store.ErrConfig)
	}},
	{"init/another source topic is refused", func(e *env) {
		_, err := e.db.Init(e.ctx, e.cfg, "elsewhere")
		e.fails(err, store.ErrConfig)
	}},
	{"init/an unknown namespace is not created by opening it", func(e *env) {
		_, err := e.db.Namespace(e.ctx, e.config("unknown"))
		e.fails(err, store.ErrNoNamespace)
	}},
	{"init/C20 namespaces with one key do not touch each other", func(e *env) {
		second := e.init(e.config("b"))
		a, b := e.claim(0), newBuilder(0)
		e.ok(e.ns.Commit(e.ctx, a.Token, b.one(widget)))
		o, err := second.Claim(e.ctx, 0)
		e.ok(err)
		e.equal("second", store.Owned{Frontier: o.Frontier, Sequence: o.Sequence}, store.Owned{})
		e.ok(second.Commit(e.ctx, o.Token, newBuilder(0).one(widget)))
		e.equal("first", e.observe(0).Frontier, ledger.Frontier(1))
	}},
	{"init/the guard is exclusive and released", func(e *env) {
		g, err := e.db.GuardSource(e.ctx, e.cfg.SourceIncarnation)
		e.ok(err)
		_, err = e.db.GuardSource(e.ctx, e.cfg.SourceIncarnation)
		e.fails(err, store.ErrServiceBusy)
		other, err := e.db.GuardSource(e.ctx, e.incarnation("other"))
		e.ok(err)
		e.ok(other.Release(e.ctx))
		e.ok(g.Check(e.ctx))
		e.ok(g.Release(e.ctx))
		e.ok(g.Release(e.ctx))
		e.fails(g.Check(e.ctx), store.ErrFence)
		g, err = e.db.GuardSource(e.ctx, e.cfg.SourceIncarnation)
		e.ok(err)
		e.ok(g.Release(e.ctx))
	}},
}

var claimCases = []testCase{
	{"claim/the first epoch is 1 at frontier 0", func(e *env) {
		before := e.observe(0)
		e.equal("unclaimed", store.Owned{Token: store.Token{Server: before.Token.Server}}, before)
		o := e.claim(0)
		e.equal("epoch", o.Token.Epoch, ledger.Epoch(1))
		e.equal("position", store.Owned{Token: o.Token}, o)
	}},
	{"claim/a second claim raises the epoch and changes the nonce", func(e *env) {
		a, b := e.claim(0), e.claim(0)
		e.equal("epoch", b.Token.Epoch, a.Token.Epoch+1)
		if a.Token.Nonce == b.Token.Nonce || b.Token.Nonce == (store.Nonce{}) {
			e.Fatal("the nonce is not new")
		}
	}},
	{"claim/observe shows what was claimed and changes nothing", func(e *env) {
		o := e.claim(1)
		e.equal("observed", e.observe(1), o)
		e.equal("observed again", e.observe(1), o)
	}},
	{"claim/partitions are independent", func(e *env) {
		e.claim(0)
		e.equal("epoch", e.observe(1).Token.Epoch, ledger.Epoch(0))
	}},
	{"claim/a partition that is not is refused", func(e *env) {
		_, err := e.ns.Claim(e.ctx, 2)
		e.fails(err, store.ErrProtocol)
		_, err = e.ns.Observe(e.ctx, -1)
		e.fails(err, store.ErrProtocol)
	}},
	{"claim/SC43 the last epoch cannot be followed", func(e *env) {
		e.db.Forge(e, e.cfg.Namespace, surface.Epoch, math.MaxInt64-1)
		last := e.claim(0)
		e.equal("epoch", last.Token.Epoch, ledger.Epoch(math.MaxInt64))
		_, err := e.ns.Claim(e.ctx, 0)
		e.fails(err, store.ErrExhausted)
		e.equal("unchanged", e.observe(0), last)
		e.ok(e.ns.Commit(e.ctx, last.Token, newBuilder(0).one(widget)))
	}},
	{"claim/concurrent claims get epochs of their own", func(e *env) {
		const n = 6
		owned := make([]store.Owned, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				o, err := e.ns.Claim(e.ctx, 0)
				if err != nil {
					e.Error(err)
				}
				owned[i] = o
			})
		}
		wg.Wait()
		seen := map[ledger.Epoch]bool{}
		for _, o := range owned {
			seen[o.Token.Epoch] = true
		}
		e.equal("distinct epochs", len(seen), n)
		e.equal("last", e.observe(0).Token.Epoch, ledger.Epoch(n))
	}},
}

var commitCases = []testCase{
	{"commit/moves frontier and sequence and stores the decision", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		d := b.valid(widget, balance(jan1, 1, 100), ready(1))
		e.ok(e.ns.Commit(e.ctx, o.Token, b.batch(d)))
		o.Frontier, o.Sequence = 1, 2
		e.equal("owned", e.observe(0), o)
		e.equal("journal", e.journal(0), []ledger.Decision{d})
	}},
	{"commit/SC19 an old epoch is fenced and writes nothing", func(e *env) {
		old := e.claim(0)
		now := e.claim(0)
		e.fails(e.ns.Commit(e.ctx, old.Token, newBuilder(0).one(widget)), store.ErrFence)
		e.equal("owned", e.observe(0), now)
		e.equal("journal", len(e.journal(0)), 0)
		h, err := e.ns.Load(e.ctx, now.Token, 0, []ledger.StockKey{widget}, false)
		e.ok(err)
		e.equal("key", h, []store.KeyHistory{{Key: widget}})
	}},
	{"commit/the right epoch with another nonce is fenced", func(e *env) {
		o := e.claim(0)
		t := o.Token
		t.Nonce[3] ^= 1
		e.fails(e.ns.Commit(e.ctx, t, newBuilder(0).one(widget)), store.ErrFence)
		e.equal("owned", e.observe(0), o)
	}},
	{"commit/the right nonce with another epoch is fenced", func(e *env) {
		o := e.claim(0)
		for _, by := range []ledger.Epoch{-1, 1} {
			t := o.Token
			t.Epoch += by
			e.fails(e.ns.Commit(e.ctx, t, newBuilder(0).one(widget)), store.ErrFence)
		}
		e.equal("owned", e.observe(0), o)
	}},
	{"commit/another timeline is another server", func(e *env) {
		o := e.claim(0)
		t := o.Token
		t.Server.Timeline++
		e.fails(e.ns.Commit(e.ctx, t, newBuilder(0).one(widget)), store.ErrServerChanged)
		t = o.Token
		t.Server.System++
		e.fails(e.ns.Commit(e.ctx, t, newBuilder(0).one(widget)), store.ErrServerChanged)
		e.equal("owned", e.observe(0), o)
	}},
	{"commit/the same batch twice is fenced by its frontier", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		batch := b.one(widget)
		e.ok(e.ns.Commit(e.ctx, o.Token, batch))
		e.fails(e.ns.Commit(e.ctx, o.Token, batch), store.ErrFence)
		e.equal("journal", len(e.journal(0)), 1)
	}},
	{"commit/an expected frontier ahead is fenced", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		b.offset = 5
		e.fails(e.ns.Commit(e.ctx, o.Token, b.one(widget)), store.ErrFence)
		e.equal("owned", e.observe(0), o)
	}},
	{"commit/another first sequence is fenced", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		b.sequence = 4
		e.fails(e.ns.Commit(e.ctx, o.Token, b.one(widget)), store.ErrFence)
		e.equal("owned", e.observe(0), o)
	}},
	{"commit/S13 a bare move passes gaps", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		b.offset = 7
		move := b.batch()
		move.Expected = 0
		e.ok(e.ns.Commit(e.ctx, o.Token, move))
		e.equal("frontier", e.observe(0).Frontier, ledger.Frontier(7))
		e.ok(e.ns.Commit(e.ctx, o.Token, b.one(widget)))
		e.equal("frontier", e.observe(0).Frontier, ledger.Frontier(8))
	}},
	{"commit/a bare move is fenced like any", func(e *env) {
		old := e.claim(0)
		e.claim(0)
		e.fails(e.ns.Commit(e.ctx, old.Token, &ledger.Batch{Next: 7}), store.ErrFence)
		e.equal("frontier", e.observe(0).Frontier, ledger.Frontier(0))
	}},
	{"commit/S13 offsets may have gaps inside and behind a batch", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		b.offset = 3
		first := b.valid(widget, ready(1))
		b.offset = 9
		second := b.valid(widget, ready(2))
		b.offset = 12
		batch := b.batch(first, second)
		batch.Expected = 0
		e.ok(e.ns.Commit(e.ctx, o.Token, batch))
		e.equal("frontier", e.observe(0).Frontier, ledger.Frontier(12))
		e.equal("journal", e.journal(0), []ledger.Decision{first, second})
	}},
	{"commit/an offset outside the batch is refused", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		batch := b.one(widget)
		batch.Next = 0
		e.fails(e.ns.Commit(e.ctx, o.Token, batch), store.ErrProtocol)
		batch = newBuilder(0).one(widget)
		batch.Decisions[0].Class = 0
		e.fails(e.ns.Commit(e.ctx, o.Token, batch), store.ErrProtocol)
		e.equal("owned", e.observe(0), o)
	}},
	{"commit/a key that exists cannot be new and nothing is written", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		e.ok(e.ns.Commit(e.ctx, o.Token, b.one(widget)))
		was := e.observe(0)
		delete(b.ids, widget)
		e.fails(e.ns.Commit(e.ctx, o.Token, b.one(widget)), store.ErrIntegrity)
		e.equal("owned", e.observe(0), was)
		e.equal("journal", len(e.journal(0)), 1)
	}},
	{"commit/of two at once with one frontier one wins", func(e *env) {
		o := e.claim(0)
		errs := make([]error, 4)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = e.ns.Commit(e.ctx, o.Token, newBuilder(0).one(widget)) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else {
				e.fails(err, store.ErrFence)
			}
		}
		e.equal("winners", won, 1)
		e.equal("journal", len(e.journal(0)), 1)
	}},
	{"commit/SC43 the last sequence cannot be followed", func(e *env) {
		e.db.Forge(e, e.cfg.Namespace, surface.NextSequence, math.MaxInt64-2)
		o, b := e.claim(0), newBuilder(0)
		b.sequence = math.MaxInt64 - 2
		d := b.valid(widget, balance(jan1, 1, 1), ready(1))
		e.ok(e.ns.Commit(e.ctx, o.Token, b.batch(d)))
		was := e.observe(0)
		e.equal("sequence", was.Sequence, ledger.Sequence(math.MaxInt64))
		overflow := &ledger.Batch{Expected: 1, Next: 2, FirstSequence: math.MaxInt64, NextSequence: math.MinInt64,
			Decisions: []ledger.Decision{b.valid(widget, ready(2))}}
		e.fails(e.ns.Commit(e.ctx, o.Token, overflow), store.ErrExhausted)
		e.equal("unchanged", e.observe(0), was)
	}},
	{"commit/SC43 the last version cannot be followed", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		e.ok(e.ns.Commit(e.ctx, o.Token, b.batch(b.valid(widget, ready(math.MaxInt64)))))
		was := e.observe(0)
		e.fails(e.ns.Commit(e.ctx, o.Token, b.batch(b.valid(widget, ready(math.MinInt64)))), store.ErrExhausted)
		e.equal("unchanged", e.observe(0), was)
		e.equal("version", e.journal(0)[0].Changes[0].Version, ledger.Version(math.MaxInt64))
	}},
	{"commit/the caller may reuse what it committed", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		value := []byte("bytes")
		batch := b.batch(b.valid(widget, balance(jan1, 1, 100)), b.rejected(ledger.Malformed, nil, value))
		e.ok(e.ns.Commit(e.ctx, o.Token, batch))
		batch.Decisions[0].Changes[0].Close = 5
		value[0] = 'X'
		stored := e.journal(0)
		e.equal("close", stored[0].Changes[0].Close, int64(100))
		e.equal("value", string(stored[1].Evidence.Value), "bytes")
	}},
}
