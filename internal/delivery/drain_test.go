package delivery_test

import (
	"testing"

	"amends/internal/delivery"
	"amends/internal/ledger"
	"amends/internal/store"
)

// pending makes an outbox of n outputs in repairs of width, 1,500 repairs before an output comes again.
func pending(b testing.TB, w *world, n, width int) {
	b.Helper()
	first := on(b, "2026-01-01")
	var batch []ledger.Decision
	for i := range n / width {
		d := decision(widget, "T-1", ledger.Revision(i+1))
		for j := range width {
			d.Changes = append(d.Changes, balance(first+ledger.Day(j+i%1_500*width), ledger.Version(1), int64(i)))
		}
		batch = append(batch, d)
	}
	versions := map[ledger.Day]ledger.Version{}
	for i := range batch {
		for j := range batch[i].Changes {
			c := &batch[i].Changes[j]
			versions[c.Day]++
			c.Version = versions[c.Day]
		}
	}
	for i := 0; i < len(batch); i += 2_000 {
		w.commit(b, 0, batch[i:min(i+2_000, len(batch))]...)
	}
}

// BenchmarkC37 drains 300,000 pending outputs through relay and view, over a broker in memory.
func BenchmarkC37(b *testing.B) {
	for name, world := range map[string]func(testing.TB, string) *world{"memory": newWorld, "postgres": newPostgresWorld} {
		b.Run(name, func(b *testing.B) { drain(b, world) })
	}
}

func drain(b *testing.B, world func(testing.TB, string) *world) {
	const n = 300_000
	for b.Loop() {
		b.StopTimer()
		w := world(b, twoPartitions)
		pending(b, w, n, 20)
		o := w.relayOptions()
		o.Serial = false
		s := delivery.NewRelayStepper(o, w.lease(b, store.Relay, 0, "a"))
		b.StartTimer()
		began := b.Elapsed()
		if err := settle(b, s, func(delivery.Progress) bool { return w.relayAt(b, 0).Sequence == n }); err != nil {
			b.Fatal(err)
		}
		s.Close()
		relayed := b.Elapsed()
		if err := w.materialize(b, w.viewOptions(), w.lease(b, store.View, 0, "a")); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(n/(relayed-began).Seconds(), "relayed/s")
		b.ReportMetric(n/(b.Elapsed()-relayed).Seconds(), "applied/s")
	}
}
