package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/storetest/surface"
)

// The store under test and its namespaces, as the suite uses them.
type (
	DB        = surface.DB
	Guard     = surface.Guard
	Namespace = surface.Namespace
)

type testCase struct {
	name string
	run  func(*env)
}

// groups returns every case.
func groups() [][]testCase {
	return [][]testCase{initCases, claimCases, commitCases, evidenceCases, loadCases, measureCases, bindCases, leaseCases,
		relayCases, viewCases, largePageCases, readCases}
}

// Run runs every case against one store. Each case has a namespace of its own, so they run side by side.
func Run(t *testing.T, open func(testing.TB) DB) {
	db := open(t)
	var counter atomic.Int64
	for _, group := range groups() {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				t.Cleanup(cancel)
				c.run(newEnv(ctx, t, db, counter.Add(1)))
			})
		}
	}
}

// Count returns how many cases Run runs.
func Count() int {
	n := 0
	for _, group := range groups() {
		n += len(group)
	}
	return n
}

// env is one case's world: a namespace of two partitions.
type env struct {
	*testing.T
	ctx  context.Context
	db   DB
	cfg  *manifest.Config
	ns   Namespace
	unit int64
}

func newEnv(ctx context.Context, t *testing.T, db DB, unit int64) *env {
	e := &env{T: t, ctx: ctx, db: db, unit: unit}
	e.cfg = e.config("a")
	e.ns = e.init(e.cfg)
	return e
}

// config returns a configuration of a namespace of this case.
func (e *env) config(suffix string) *manifest.Config {
	e.Helper()
	cfg, err := manifest.Default(fmt.Sprintf("case-%d-%s", e.unit, suffix), e.incarnation("source "+suffix))
	if err != nil {
		e.Fatal(err)
	}
	return cfg
}

// incarnation returns a topic id of this case.
func (e *env) incarnation(name string) string {
	var b [16]byte
	copy(b[8:], name)
	for i := range 8 {
		b[i] = byte(e.unit >> (8 * i))
	}
	return fmt.Sprintf("kafka:%x", b)
}

func (e *env) init(cfg *manifest.Config) Namespace {
	e.Helper()
	ns, err := e.db.Init(e.ctx, cfg, "topic-"+cfg.Namespace)
	e.ok(err)
	return ns
}

func (e *env) output() manifest.Output {
	return manifest.Output{Topic: "output-" + e.cfg.Namespace, Incarnation: e.incarnation("output"), Partitions: 2}
}

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("unexpected error: %v", err)
	}
}

func (e *env) fails(err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("got error %v, want %v", err, want)
	}
}

func (e *env) equal(what string, got, want any) {
	e.Helper()
	if d := cmp.Diff(want, got); d != "" {
		e.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func (e *env) claim(p ledger.Partition) store.Owned {
	e.Helper()
	o, err := e.ns.Claim(e.ctx, p)
	e.ok(err)
	return o
}

func (e *env) observe(p ledger.Partition) store.Owned {
	e.Helper()
	o, err := e.ns.Observe(e.ctx, p)
	e.ok(err)
	return o
}

func (e *env) bind() {
	e.Helper()
	e.ok(e.ns.Bind(e.ctx, e.output()))
}

func (e *env) acquire(role store.Role, p ledger.Partition, holder string) store.Lease {
	e.Helper()
	l, err := e.ns.AcquireService(e.ctx, role, p, holder, time.Minute)
	e.ok(err)
	return l
}

// states reads every partition in one snapshot.
func (e *env) states() (states []store.PartitionState) {
	e.Helper()
	e.ok(e.ns.Snapshot(e.ctx, func(s store.Snapshot) (err error) {
		states, err = s.Partitions(e.ctx)
		return err
	}))
	return states
}

// journal reads every decision of a partition.
func (e *env) journal(p ledger.Partition) (all []ledger.Decision) {
	e.Helper()
	e.ok(e.ns.Snapshot(e.ctx, func(s store.Snapshot) error {
		return s.Journal(e.ctx, p, func(d *ledger.Decision) error {
			all = append(all, store.CloneDecision(d))
			return nil
		})
	}))
	return all
}

// rows reads every view row of a partition.
func (e *env) rows(p ledger.Partition) (all []store.ViewRow) {
	e.Helper()
	e.ok(e.ns.Snapshot(e.ctx, func(s store.Snapshot) error {
		return s.ViewRows(e.ctx, p, func(r store.ViewRow) error {
			all = append(all, r)
			return nil
		})
	}))
	return all
}
