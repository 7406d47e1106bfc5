package storetest

import (
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/storetest/surface"
)

// refusedWith binds after a forgery and expects a refusal that leaves the namespace unbound.
func refusedWith(what surface.Forgery) func(*env) {
	return func(e *env) {
		e.db.Forge(e, e.cfg.Namespace, what, 0)
		e.fails(e.ns.Bind(e.ctx, e.output()), store.ErrBindRefused)
		bound, err := e.ns.Binding(e.ctx)
		e.ok(err)
		if bound != nil {
			e.Fatalf("bound to %+v", bound)
		}
	}
}

var bindCases = []testCase{
	{"bind/S9 positions begin at zero without a holder", func(e *env) {
		unbound, err := e.ns.Binding(e.ctx)
		e.ok(err)
		if unbound != nil || e.states()[0].Relay != nil || e.states()[0].View != nil {
			e.Fatal("positions or a binding before the binding")
		}
		e.bind()
		bound, err := e.ns.Binding(e.ctx)
		e.ok(err)
		e.equal("binding", *bound, e.output())
		for _, s := range e.states() {
			e.equal("relay", s.Relay, &store.RelayPosition{})
			e.equal("view", s.View, &store.ViewPosition{Cause: -1})
		}
		for p := range ledger.Partition(2) {
			relay, err := e.ns.RelayPosition(e.ctx, p)
			e.ok(err)
			e.equal("relay", relay, store.RelayPosition{})
			view, err := e.ns.ViewPosition(e.ctx, p)
			e.ok(err)
			e.equal("view", view, store.ViewPosition{Cause: -1})
		}
	}},
	{"bind/SC41 the same binding again succeeds and moves nothing", func(e *env) {
		e.bind()
		l := e.acquire(store.Relay, 0, "r")
		e.bind()
		position, err := e.ns.RelayPosition(e.ctx, 0)
		e.ok(err)
		e.equal("relay", position, store.RelayPosition{Term: l.Term, Nonce: l.Nonce})
	}},
	{"bind/SC41 one changed field is refused", func(e *env) {
		e.bind()
		for _, change := range []func(*manifest.Output){
			func(o *manifest.Output) { o.Topic = "other" },
			func(o *manifest.Output) { o.Incarnation = e.incarnation("output2") },
			func(o *manifest.Output) { o.Partitions = 3 },
		} {
			o := e.output()
			change(&o)
			e.fails(e.ns.Bind(e.ctx, o), store.ErrBinding)
		}
		bound, err := e.ns.Binding(e.ctx)
		e.ok(err)
		e.equal("binding", *bound, e.output())
	}},
	{"bind/SC41 allowed while decisions are pending", func(e *env) {
		e.threeEach()
		e.bind()
		pending, err := e.ns.Pending(e.ctx, 0, store.RelayPosition{}, 100)
		e.ok(err)
		e.equal("pending", len(pending), 3)
	}},
	{"bind/another number of partitions is refused", func(e *env) {
		o := e.output()
		o.Partitions = 1
		e.fails(e.ns.Bind(e.ctx, o), store.ErrBindRefused)
	}},
	{"bind/SC41 its own source topic is refused", func(e *env) {
		o := e.output()
		o.Topic, o.Incarnation = "topic-"+e.cfg.Namespace, e.cfg.SourceIncarnation
		e.fails(e.ns.Bind(e.ctx, o), store.ErrBindRefused)
		o.Incarnation = e.incarnation("output")
		e.fails(e.ns.Bind(e.ctx, o), store.ErrBindRefused)
	}},
	{"bind/another namespace's source is refused", func(e *env) {
		other := e.config("b")
		e.init(other)
		o := e.output()
		o.Incarnation = other.SourceIncarnation
		e.fails(e.ns.Bind(e.ctx, o), store.ErrBindRefused)
	}},
	{"bind/S9 an output serves one namespace", func(e *env) {
		second := e.init(e.config("b"))
		e.bind()
		e.fails(second.Bind(e.ctx, e.output()), store.ErrBindRefused)
	}},
	{"bind/S9 two namespaces may read one source", func(e *env) {
		cfg := e.config("a")
		cfg.Namespace += "-too"
		ns, err := e.db.Init(e.ctx, cfg, "topic-"+e.cfg.Namespace)
		e.ok(err)
		e.bind()
		o := e.output()
		o.Topic, o.Incarnation = "second", e.incarnation("second")
		e.ok(ns.Bind(e.ctx, o))
	}},
	{"bind/S9 an output is no source of a new namespace", func(e *env) {
		e.bind()
		cfg := e.config("b")
		cfg.SourceIncarnation = e.output().Incarnation
		_, err := e.db.Init(e.ctx, cfg, e.output().Topic)
		e.fails(err, store.ErrBindRefused)
		_, err = e.db.Namespace(e.ctx, cfg)
		e.fails(err, store.ErrNoNamespace)
	}},
	{"bind/SC41 a receipt without a binding prevents it", refusedWith(surface.AReceipt)},
	{"bind/SC41 a view row without a binding prevents it", refusedWith(surface.AViewRow)},
	{"bind/SC41 a view error without a binding prevents it", refusedWith(surface.AViewError)},
	{"bind/SC41 a moved relay position without a binding prevents it", refusedWith(surface.RelayMoved)},
	{"bind/SC41 a moved view position without a binding prevents it", refusedWith(surface.ViewMoved)},
	{"bind/an unbound namespace has no positions and no leases", func(e *env) {
		_, err := e.ns.RelayPosition(e.ctx, 0)
		e.fails(err, store.ErrBinding)
		_, err = e.ns.ViewPosition(e.ctx, 0)
		e.fails(err, store.ErrBinding)
		_, err = e.ns.AcquireService(e.ctx, store.Relay, 0, "r", 1)
		e.fails(err, store.ErrBinding)
		e.fails(e.ns.Acknowledge(e.ctx, store.Lease{Role: store.Relay}, store.Receipt{Next: 1}), store.ErrBinding)
	}},
}
