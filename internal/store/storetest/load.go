package storetest

import (
	"fmt"

	"amends/internal/ledger"
	"amends/internal/store"
)

// load returns the histories of keys on partition 0.
func (e *env) load(keys ...ledger.StockKey) []store.KeyHistory {
	e.Helper()
	h, err := e.ns.Load(e.ctx, 0, keys)
	e.ok(err)
	return h
}

// threeEach commits three decisions of widget and two of gadget, alternating, and returns them with the owner's row.
func (e *env) threeEach() (store.Owned, *builder, []ledger.Decision) {
	e.Helper()
	o, b := e.claim(0), newBuilder(0)
	all := []ledger.Decision{b.valid(widget, ready(1)), b.valid(gadget, ready(1)), b.valid(widget, balance(jan1, 1, 5)), b.valid(gadget), b.valid(widget)}
	e.ok(e.ns.Commit(e.ctx, o.Token, b.batch(all...)))
	return e.observe(0), b, all
}

var loadCases = []testCase{
	{"load/an unknown key has no history", func(e *env) {
		e.equal("history", e.load(widget), []store.KeyHistory{{Key: widget}})
		e.equal("no keys", len(e.load()), 0)
	}},
	{"load/keys come in the order asked with all their decisions", func(e *env) {
		_, _, all := e.threeEach()
		other := ledger.StockKey{Item: "none", Location: "none"}
		e.equal("histories", e.load(gadget, other, widget), []store.KeyHistory{
			{Key: gadget, Known: true, KeyID: 1, Decisions: []ledger.Decision{all[1], all[3]}},
			{Key: other},
			{Key: widget, Known: true, KeyID: 0, Decisions: []ledger.Decision{all[0], all[2], all[4]}},
		})
	}},
	{"load/a key of another partition is not known here", func(e *env) {
		e.threeEach()
		h, err := e.ns.Load(e.ctx, 1, []ledger.StockKey{widget})
		e.ok(err)
		e.equal("histories", h, []store.KeyHistory{{Key: widget}})
	}},
	{"load/rejected records belong to no key", func(e *env) {
		o, b, all := e.threeEach()
		e.ok(e.ns.Commit(e.ctx, o.Token, b.batch(b.rejected(ledger.Malformed, nil, nil))))
		e.equal("widget", e.load(widget)[0].Decisions, []ledger.Decision{all[0], all[2], all[4]})
	}},
	{"load/a snapshot leaves only what follows it", func(e *env) {
		o, b, all := e.threeEach()
		e.ok(e.ns.SaveSnapshots(e.ctx, o.Token, 0, o.Frontier, []store.KeySnapshot{{KeyID: 0, Frontier: 3, State: []byte{0, 1}, Rows: 2}}))
		e.equal("widget", e.load(widget), []store.KeyHistory{{Key: widget, Known: true, Snapshot: []byte{0, 1}, Decisions: all[4:5]}})
		next := b.valid(widget, ready(2))
		e.ok(e.ns.Commit(e.ctx, o.Token, b.batch(next)))
		e.equal("widget", e.load(widget)[0].Decisions, []ledger.Decision{all[4], next})
		e.equal("gadget", e.load(gadget)[0].Decisions, []ledger.Decision{all[1], all[3]})
	}},
	{"load/a snapshot at the frontier leaves nothing", func(e *env) {
		o, _, _ := e.threeEach()
		e.ok(e.ns.SaveSnapshots(e.ctx, o.Token, 0, o.Frontier, []store.KeySnapshot{{KeyID: 1, Frontier: o.Frontier, State: []byte("s")}}))
		e.equal("gadget", e.load(gadget), []store.KeyHistory{{Key: gadget, Known: true, KeyID: 1, Snapshot: []byte("s")}})
	}},
	{"load/a later snapshot replaces", func(e *env) {
		o, _, all := e.threeEach()
		for f, state := range []string{1: "one", 3: "three"} {
			if state != "" {
				e.ok(e.ns.SaveSnapshots(e.ctx, o.Token, 0, o.Frontier, []store.KeySnapshot{{KeyID: 0, Frontier: ledger.Frontier(f), State: []byte(state)}}))
			}
		}
		h := e.load(widget)[0]
		e.equal("state", string(h.Snapshot), "three")
		e.equal("rest", h.Decisions, all[4:5])
	}},
	{"snapshot/a fenced owner saves none", func(e *env) {
		o, _, _ := e.threeEach()
		e.claim(0)
		err := e.ns.SaveSnapshots(e.ctx, o.Token, 0, o.Frontier, []store.KeySnapshot{{KeyID: 0, Frontier: 1, State: []byte("s")}})
		e.fails(err, store.ErrFence)
		if e.load(widget)[0].Snapshot != nil {
			e.Fatal("a fenced snapshot was stored")
		}
	}},
	{"snapshot/another frontier than the committed one saves none", func(e *env) {
		o, _, _ := e.threeEach()
		err := e.ns.SaveSnapshots(e.ctx, o.Token, 0, o.Frontier-1, []store.KeySnapshot{{KeyID: 0, Frontier: 1, State: []byte("s")}})
		e.fails(err, store.ErrFence)
	}},
	{"snapshot/beyond the frontier or of no key saves none", func(e *env) {
		o, _, _ := e.threeEach()
		good := store.KeySnapshot{KeyID: 0, Frontier: 1, State: []byte("s")}
		for _, bad := range []store.KeySnapshot{{KeyID: 1, Frontier: o.Frontier + 1, State: []byte("s")}, {KeyID: 4, Frontier: 1, State: []byte("s")}} {
			e.fails(e.ns.SaveSnapshots(e.ctx, o.Token, 0, o.Frontier, []store.KeySnapshot{good, bad}), store.ErrProtocol)
		}
		if e.load(widget)[0].Snapshot != nil {
			e.Fatal("part of a refused set was stored")
		}
	}},
	{"load/many keys at once", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		var all []ledger.Decision
		var keys []ledger.StockKey
		for i := range 600 {
			k := ledger.StockKey{Item: fmt.Sprint("item-", i%300), Location: "x"}
			if i < 300 {
				keys = append(keys, k)
			}
			all = append(all, b.valid(k, balance(jan1, ledger.Version(1+i/300), int64(i))))
		}
		e.ok(e.ns.Commit(e.ctx, o.Token, b.batch(all...)))
		for i, h := range e.load(keys...) {
			e.equal(h.Key.Item, h.Decisions, []ledger.Decision{all[i], all[i+300]})
		}
	}},
	{"load/a namespace opened again loads the same", func(e *env) {
		e.threeEach()
		before := e.load(widget, gadget)
		ns, err := e.db.Namespace(e.ctx, e.cfg)
		e.ok(err)
		after, err := ns.Load(e.ctx, 0, []ledger.StockKey{widget, gadget})
		e.ok(err)
		e.equal("histories", after, before)
	}},
}
