package storetest

import (
	"fmt"

	"amends/internal/ledger"
	"amends/internal/store"
)

// load returns the histories of keys on partition 0.
func (e *env) load(keys ...ledger.StockKey) []store.KeyHistory {
	e.Helper()
	h, err := e.ns.Load(e.ctx, e.observe(0).Token, 0, keys, false)
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
		h, err := e.ns.Load(e.ctx, e.observe(1).Token, 1, []ledger.StockKey{widget}, false)
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
	{"load/S12 another server gives no histories", func(e *env) {
		o, _, _ := e.threeEach()
		other := o.Token
		other.Server.Timeline++
		_, err := e.ns.Load(e.ctx, other, 0, []ledger.StockKey{widget}, false)
		e.fails(err, store.ErrServerChanged)
	}},
	{"load/a snapshot is left out where it is not wanted", func(e *env) {
		o, _, all := e.threeEach()
		e.ok(e.ns.SaveSnapshots(e.ctx, o.Token, 0, o.Frontier, []store.KeySnapshot{{KeyID: 0, Frontier: o.Frontier, State: []byte("damaged")}}))
		h, err := e.ns.Load(e.ctx, o.Token, 0, []ledger.StockKey{widget, gadget}, true)
		e.ok(err)
		e.equal("histories", h, []store.KeyHistory{
			{Key: widget, Known: true, KeyID: 0, Decisions: []ledger.Decision{all[0], all[2], all[4]}},
			{Key: gadget, Known: true, KeyID: 1, Decisions: []ledger.Decision{all[1], all[3]}},
		})
	}},
	{"load/I22 no more rows than the limit, but whole keys and at least one", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		keys := []ledger.StockKey{{Item: "a", Location: "x"}, {Item: "none", Location: "x"}, {Item: "b", Location: "x"}, {Item: "c", Location: "x"}}
		rows := map[ledger.StockKey]int{keys[0]: store.LoadRows/2 + 7, keys[2]: 2*store.LoadRows + 5, keys[3]: 3}
		for _, k := range []ledger.StockKey{keys[0], keys[2], keys[3]} {
			var all []ledger.Decision
			for range rows[k] {
				all = append(all, b.valid(k))
			}
			e.ok(e.ns.Commit(e.ctx, o.Token, b.batch(all...)))
		}
		calls := 0
		for missing := keys; len(missing) > 0; calls++ {
			h, err := e.ns.Load(e.ctx, o.Token, 0, missing, false)
			e.ok(err)
			if len(h) == 0 || len(h) > len(missing) {
				e.Fatalf("%d histories of %d keys", len(h), len(missing))
			}
			total := 0
			for i := range h {
				e.equal("key", h[i].Key, missing[i])
				e.equal("rows of "+h[i].Key.Item, len(h[i].Decisions), rows[h[i].Key])
				if n := len(h[i].Decisions); n > 0 {
					e.equal("offsets of "+h[i].Key.Item, int(h[i].Decisions[n-1].Offset-h[i].Decisions[0].Offset), n-1)
				}
				if total += rows[h[i].Key]; i > 0 && total > store.LoadRows {
					e.Fatalf("%d rows in one load", total)
				}
			}
			missing = missing[len(h):]
		}
		if calls < 2 {
			e.Fatal("everything came at once")
		}
	}},
	{"load/I22 no more changes and no more snapshot bytes than the limits", func(e *env) {
		o, b := e.claim(0), newBuilder(0)
		var changes []ledger.Change
		for i := range ledger.Day(36_000) {
			changes = append(changes, balance(jan1+i, 1, 1))
		}
		var keys []ledger.StockKey
		for i := range store.LoadChanges/len(changes) + 3 {
			keys = append(keys, ledger.StockKey{Item: fmt.Sprint("item-", i), Location: "x"})
			e.ok(e.ns.Commit(e.ctx, o.Token, b.batch(b.valid(keys[i], changes...))))
		}
		if n := len(e.load(keys...)); n < 2 || n >= len(keys) {
			e.Fatalf("%d of %d histories", n, len(keys))
		}
		at := e.observe(0).Frontier
		large := make([]byte, store.LoadBytes*2/3)
		for i := range ledger.KeyID(3) {
			e.ok(e.ns.SaveSnapshots(e.ctx, o.Token, 0, at, []store.KeySnapshot{{KeyID: i, Frontier: at, State: large}}))
		}
		if first := e.load(keys[:3]...); len(first) != 1 || len(first[0].Snapshot) != len(large) {
			e.Fatalf("%d histories with large snapshots", len(first))
		}
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
		after, err := ns.Load(e.ctx, e.observe(0).Token, 0, []ledger.StockKey{widget, gadget}, false)
		e.ok(err)
		e.equal("histories", after, before)
	}},
}
