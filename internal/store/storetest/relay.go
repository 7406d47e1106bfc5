package storetest

import (
	"amends/internal/ledger"
	"amends/internal/store"
)

// outbox binds, acquires the relay of partition 0 and commits decisions with 2, 0, 3, 1 and 4 outputs: sequences 0..9.
func (e *env) outbox() (store.Lease, []ledger.Decision) {
	e.Helper()
	e.bind()
	o, b := e.claim(0), newBuilder(0)
	var all []ledger.Decision
	for i, n := range []int{2, 0, 3, 1, 4} {
		var changes []ledger.Change
		for d := range n {
			changes = append(changes, balance(jan1+ledger.Day(d), ledger.Version(i+1), int64(10*i+d)))
		}
		all = append(all, b.valid(widget, changes...))
	}
	all = append(all, b.rejected(ledger.Malformed, nil, nil))
	e.ok(e.ns.Commit(e.ctx, o.Token, b.batch(all...)))
	return e.acquire(store.Relay, 0, "relay"), all
}

func (e *env) pending(from ledger.Sequence, most int) []ledger.Decision {
	e.Helper()
	position, err := e.ns.RelayPosition(e.ctx, 0)
	e.ok(err)
	position.Sequence = from
	pending, err := e.ns.Pending(e.ctx, 0, position, most)
	e.ok(err)
	return pending
}

// refused acknowledges and expects an error that leaves position and receipts alone.
func (e *env) refused(l store.Lease, r store.Receipt, want error) {
	e.Helper()
	before, err := e.ns.RelayPosition(e.ctx, 0)
	e.ok(err)
	last, err := e.ns.LastReceipt(e.ctx, 0)
	e.ok(err)
	e.fails(e.ns.Acknowledge(e.ctx, l, r), want)
	after, err := e.ns.RelayPosition(e.ctx, 0)
	e.ok(err)
	e.equal("position", after, before)
	stored, err := e.ns.LastReceipt(e.ctx, 0)
	e.ok(err)
	e.equal("last receipt", stored, last)
}

var relayCases = []testCase{
	{"relay/pending gives decisions with outputs and their keys", func(e *env) {
		_, all := e.outbox()
		e.equal("pending", e.pending(0, 100), []ledger.Decision{all[0], all[2], all[3], all[4]})
	}},
	{"relay/pending starts with the decision that holds the sequence", func(e *env) {
		_, all := e.outbox()
		e.equal("from 3", e.pending(3, 100), []ledger.Decision{all[2], all[3], all[4]})
		e.equal("from 5", e.pending(5, 100), []ledger.Decision{all[3], all[4]})
		e.equal("from 9", e.pending(9, 100), []ledger.Decision{all[4]})
		e.equal("from 10", len(e.pending(10, 100)), 0)
	}},
	{"relay/pending gives whole decisions within the limit and at least one", func(e *env) {
		_, all := e.outbox()
		e.equal("one", e.pending(0, 1), all[:1])
		e.equal("four", e.pending(0, 4), all[:1])
		e.equal("five", e.pending(0, 5), []ledger.Decision{all[0], all[2]})
		e.equal("six", e.pending(0, 6), []ledger.Decision{all[0], all[2], all[3]})
	}},
	{"relay/pending reads on past many rows", func(e *env) {
		e.bind()
		o, b := e.claim(0), newBuilder(0)
		var all []ledger.Decision
		for i := range 1_300 {
			all = append(all, b.valid(widget, ready(ledger.Version(i+1))))
		}
		e.ok(e.ns.Commit(e.ctx, o.Token, b.batch(all...)))
		e.equal("all", e.pending(0, 5_000), all)
		e.equal("some", e.pending(7, 1_100), all[7:1_107])
		e.equal("exact", e.pending(0, 512), all[:512])
	}},
	{"relay/an empty outbox has nothing pending", func(e *env) {
		e.bind()
		e.equal("pending", len(e.pending(0, 10)), 0)
		last, err := e.ns.LastReceipt(e.ctx, 0)
		e.ok(err)
		if last != nil {
			e.Fatalf("receipt %+v", last)
		}
		d, err := e.ns.Outbox(e.ctx, 0, 0)
		e.ok(err)
		if d != nil {
			e.Fatalf("decision %+v", d)
		}
	}},
	{"receipt/moves the position and is the last", func(e *env) {
		l, all := e.outbox()
		for _, r := range []store.Receipt{{First: 0, Next: 3, Offset: 0}, {First: 3, Next: 5, Offset: 7}, {First: 5, Next: 10, Offset: 9}} {
			e.ok(e.ns.Acknowledge(e.ctx, l, r))
			position, err := e.ns.RelayPosition(e.ctx, 0)
			e.ok(err)
			e.equal("position", position, store.RelayPosition{Term: l.Term, Nonce: l.Nonce, Sequence: r.Next, Output: r.End(), Source: position.Source})
			last, err := e.ns.LastReceipt(e.ctx, 0)
			e.ok(err)
			e.equal("last", *last, r)
			if r.Next < 10 {
				e.equal("pending", e.pending(r.Next, 1)[0], all[2+r.Next/5])
			}
		}
		e.equal("pending", len(e.pending(10, 10)), 0)
	}},
	{"receipt/the same again is idempotent, an older one too", func(e *env) {
		l, _ := e.outbox()
		first, second := store.Receipt{First: 0, Next: 3, Offset: 4}, store.Receipt{First: 3, Next: 4, Offset: 7}
		for _, r := range []store.Receipt{first, first, second, first, second} {
			e.ok(e.ns.Acknowledge(e.ctx, l, r))
		}
		position, err := e.ns.RelayPosition(e.ctx, 0)
		e.ok(err)
		e.equal("sequence", position.Sequence, ledger.Sequence(4))
	}},
	{"receipt/a conflicting one is refused", func(e *env) {
		l, _ := e.outbox()
		e.ok(e.ns.Acknowledge(e.ctx, l, store.Receipt{First: 0, Next: 3, Offset: 4}))
		e.refused(l, store.Receipt{First: 0, Next: 3, Offset: 5}, store.ErrProtocol)
		e.refused(l, store.Receipt{First: 0, Next: 2, Offset: 4}, store.ErrProtocol)
		e.refused(l, store.Receipt{First: 2, Next: 4, Offset: 7}, store.ErrProtocol)
	}},
	{"receipt/one for later work is refused", func(e *env) {
		l, _ := e.outbox()
		e.refused(l, store.Receipt{First: 1, Next: 3, Offset: 1}, store.ErrProtocol)
		e.refused(l, store.Receipt{First: 0, Next: 11, Offset: 0}, store.ErrProtocol)
	}},
	{"receipt/one at a lower offset than the last end is refused", func(e *env) {
		l, _ := e.outbox()
		e.ok(e.ns.Acknowledge(e.ctx, l, store.Receipt{First: 0, Next: 3, Offset: 10}))
		e.refused(l, store.Receipt{First: 3, Next: 5, Offset: 12}, store.ErrProtocol)
		e.ok(e.ns.Acknowledge(e.ctx, l, store.Receipt{First: 3, Next: 5, Offset: 13}))
	}},
	{"receipt/an empty or negative one is refused", func(e *env) {
		l, _ := e.outbox()
		for _, r := range []store.Receipt{{}, {First: -1, Next: 1}, {First: 0, Next: 1, Offset: -1}, {First: 0, Next: 3, Offset: 1<<63 - 2}} {
			e.refused(l, r, store.ErrProtocol)
		}
	}},
	{"receipt/I18 another term or nonce is fenced", func(e *env) {
		l, _ := e.outbox()
		e.ok(e.ns.ReleaseService(e.ctx, l))
		e.acquire(store.Relay, 0, "other")
		e.refused(l, store.Receipt{First: 0, Next: 3, Offset: 0}, store.ErrFence)
		forged := e.acquire(store.Relay, 0, "other")
		forged.Nonce[0] ^= 1
		e.refused(forged, store.Receipt{First: 0, Next: 3, Offset: 0}, store.ErrFence)
		forged.Nonce[0] ^= 1
		forged.Term++
		e.refused(forged, store.Receipt{First: 0, Next: 3, Offset: 0}, store.ErrFence)
	}},
	{"receipt/a view's lease gives no receipts", func(e *env) {
		e.outbox()
		e.refused(e.acquire(store.View, 0, "v"), store.Receipt{First: 0, Next: 1}, store.ErrFence)
	}},
	{"receipt/a former holder is fenced even where its receipt is stored", func(e *env) {
		l, _ := e.outbox()
		r := store.Receipt{First: 0, Next: 3, Offset: 0}
		e.ok(e.ns.Acknowledge(e.ctx, l, r))
		e.ok(e.ns.ReleaseService(e.ctx, l))
		e.acquire(store.Relay, 0, "other")
		e.refused(l, r, store.ErrFence)
	}},
	{"relay/the outbox finds a sequence before and after its receipt", func(e *env) {
		l, all := e.outbox()
		holds := []int{0, 0, 2, 2, 2, 3, 4, 4, 4, 4}
		check := func() {
			for sequence, at := range holds {
				d, err := e.ns.Outbox(e.ctx, 0, ledger.Sequence(sequence))
				e.ok(err)
				e.equal("decision", d, &all[at])
			}
			for _, none := range []ledger.Sequence{-1, 10} {
				d, err := e.ns.Outbox(e.ctx, 0, none)
				e.ok(err)
				if d != nil {
					e.Fatalf("sequence %d: %+v", none, d)
				}
			}
		}
		check()
		for _, r := range []store.Receipt{{First: 0, Next: 3, Offset: 0}, {First: 3, Next: 4, Offset: 3}, {First: 4, Next: 8, Offset: 5}, {First: 8, Next: 10, Offset: 9}} {
			e.ok(e.ns.Acknowledge(e.ctx, l, r))
			check()
		}
	}},
}
