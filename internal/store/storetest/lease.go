package storetest

import (
	"math"
	"time"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/storetest/surface"
)

var leaseCases = []testCase{
	{"lease/the first term is 1 and is installed in the position row", func(e *env) {
		e.bind()
		l := e.acquire(store.View, 1, "v")
		e.equal("lease", l, store.Lease{Role: store.View, Holder: "v", Term: 1, Nonce: l.Nonce, Partition: 1})
		position, err := e.ns.ViewPosition(e.ctx, 1)
		e.ok(err)
		e.equal("position", position, store.ViewPosition{Term: 1, Nonce: l.Nonce, Cause: -1})
		if l.Nonce == (store.Nonce{}) {
			e.Fatal("the nonce is zero")
		}
	}},
	{"lease/another holder waits while it runs", func(e *env) {
		e.bind()
		l := e.acquire(store.Relay, 0, "a")
		_, err := e.ns.AcquireService(e.ctx, store.Relay, 0, "b", time.Minute)
		e.fails(err, store.ErrServiceBusy)
		position, err := e.ns.RelayPosition(e.ctx, 0)
		e.ok(err)
		e.equal("term", position.Term, l.Term)
	}},
	{"lease/SC38 an expired one is taken over with a new term and nonce", func(e *env) {
		e.bind()
		old, err := e.ns.AcquireService(e.ctx, store.Relay, 0, "a", time.Microsecond)
		e.ok(err)
		time.Sleep(2 * time.Millisecond)
		l := e.acquire(store.Relay, 0, "b")
		e.equal("term", l.Term, old.Term+1)
		if l.Nonce == old.Nonce {
			e.Fatal("the nonce is not new")
		}
	}},
	{"lease/the same holder may acquire again", func(e *env) {
		e.bind()
		first := e.acquire(store.Relay, 0, "a")
		e.equal("term", e.acquire(store.Relay, 0, "a").Term, first.Term+1)
	}},
	{"lease/roles and partitions are independent", func(e *env) {
		e.bind()
		for p := range ledger.Partition(2) {
			for i, role := range []store.Role{store.Relay, store.View} {
				e.equal("term", e.acquire(role, p, string(rune('a'+2*int(p)+i))).Term, int64(1))
			}
		}
	}},
	{"lease/renewing keeps it past its time", func(e *env) {
		e.bind()
		l, err := e.ns.AcquireService(e.ctx, store.Relay, 0, "a", time.Millisecond)
		e.ok(err)
		lost, err := e.ns.RenewServices(e.ctx, "a", []store.Lease{l}, time.Minute)
		e.ok(err)
		e.equal("lost", len(lost), 0)
		time.Sleep(2 * time.Millisecond)
		_, err = e.ns.AcquireService(e.ctx, store.Relay, 0, "b", time.Minute)
		e.fails(err, store.ErrServiceBusy)
	}},
	{"lease/renewing names those that are lost and keeps the rest", func(e *env) {
		e.bind()
		lost, err := e.ns.AcquireService(e.ctx, store.Relay, 0, "a", time.Microsecond)
		e.ok(err)
		kept := e.acquire(store.View, 0, "a")
		time.Sleep(2 * time.Millisecond)
		e.acquire(store.Relay, 0, "b")
		got, err := e.ns.RenewServices(e.ctx, "a", []store.Lease{kept, lost}, time.Minute)
		e.ok(err)
		e.equal("lost", got, []store.Lease{lost})
	}},
	{"lease/an expired one that nobody took is renewed", func(e *env) {
		e.bind()
		l, err := e.ns.AcquireService(e.ctx, store.View, 0, "a", time.Microsecond)
		e.ok(err)
		time.Sleep(2 * time.Millisecond)
		lost, err := e.ns.RenewServices(e.ctx, "a", []store.Lease{l}, time.Minute)
		e.ok(err)
		e.equal("lost", len(lost), 0)
	}},
	{"lease/a released one is free at once", func(e *env) {
		e.bind()
		l := e.acquire(store.Relay, 0, "a")
		e.ok(e.ns.ReleaseService(e.ctx, l))
		e.equal("term", e.acquire(store.Relay, 0, "b").Term, l.Term+1)
		e.ok(e.ns.ReleaseService(e.ctx, l))
		_, err := e.ns.AcquireService(e.ctx, store.Relay, 0, "c", time.Minute)
		e.fails(err, store.ErrServiceBusy)
	}},
	{"lease/SC43 the last term cannot be followed", func(e *env) {
		e.bind()
		e.db.Forge(e, e.cfg.Namespace, surface.RelayTerm, math.MaxInt64-1)
		e.db.Forge(e, e.cfg.Namespace, surface.ViewTerm, math.MaxInt64-1)
		for _, role := range []store.Role{store.Relay, store.View} {
			e.equal("term", e.acquire(role, 0, "a").Term, int64(math.MaxInt64))
			_, err := e.ns.AcquireService(e.ctx, role, 0, "a", time.Minute)
			e.fails(err, store.ErrExhausted)
		}
	}},
	{"lease/holders may have any name", func(e *env) {
		e.bind()
		for _, holder := range hostile {
			l := e.acquire(store.Relay, 0, holder)
			lost, err := e.ns.RenewServices(e.ctx, holder, []store.Lease{l}, time.Minute)
			e.ok(err)
			e.equal("lost", len(lost), 0)
			e.ok(e.ns.ReleaseService(e.ctx, l))
		}
	}},
}
