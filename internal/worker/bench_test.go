package worker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/store/memory"
	"amends/internal/store/postgres"
	"amends/internal/wire"
)

// BenchmarkWorker measures records committed per second through an in-process broker: 1,000 keys on two partitions, new
// receipts over 30 days. It reports, beside the rate, records a commit.
func BenchmarkWorker(b *testing.B) {
	for _, kind := range []string{"memory", "postgres"} {
		b.Run(kind, func(b *testing.B) { benchmarkWorker(b, kind) })
	}
}

func benchmarkWorker(b *testing.B, kind string) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	o := broker.Options{Brokers: c.ListenAddrs()}
	admin, err := broker.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	defer admin.Close()
	topic, err := admin.CreateTopic(ctx, "src", 2, 1)
	if err != nil {
		b.Fatal(err)
	}
	cfg, err := manifest.New(manifest.Config{Namespace: "bench", SourceIncarnation: topic.Incarnation, LedgerOrigin: day("2026-01-01"), Partitions: 2, OpenKeys: &manifest.Terms{}})
	if err != nil {
		b.Fatal(err)
	}
	var ns Store
	if kind == "memory" {
		if ns, err = memory.New().Init(ctx, cfg, "src"); err != nil {
			b.Fatal(err)
		}
	} else {
		db, err := postgres.Open(ctx, postgres.Options{URL: pgtest.New(b)})
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		if err := db.Migrate(ctx); err != nil {
			b.Fatal(err)
		}
		if ns, err = db.Init(ctx, cfg, "src"); err != nil {
			b.Fatal(err)
		}
	}
	const records = 200_000
	for b.Loop() {
		b.StopTimer()
		publishBench(b, o, topic, cfg, records)
		ends, err := admin.Ends(ctx, "src")
		if err != nil {
			b.Fatal(err)
		}
		f := &faulty{Store: ns}
		run, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		b.StartTimer()
		go func() {
			done <- Run(run, Options{Store: f, Topics: admin, Manifest: &manifest.Manifest{Config: cfg, SourceTopic: "src"}, Join: func(m broker.Member) (Source, error) {
				return broker.NewGroup(broker.GroupOptions{Member: m, Group: GroupID("bench"), Topic: "src", Incarnation: topic.Incarnation, Options: o})
			}})
		}()
		for reached := false; !reached; time.Sleep(2 * time.Millisecond) {
			reached = true
			for p, end := range ends {
				owned, err := ns.Observe(ctx, ledger.Partition(p))
				if err != nil {
					b.Fatal(err)
				}
				reached = reached && owned.Frontier >= ledger.Frontier(end)
			}
		}
		b.StopTimer()
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(records)/float64(len(f.commits)), "records/commit")
		b.StartTimer()
	}
	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func publishBench(b *testing.B, o broker.Options, topic broker.Topic, cfg *manifest.Config, n int) {
	b.Helper()
	producer, err := broker.NewProducer(o, topic.Name, topic.Incarnation)
	if err != nil {
		b.Fatal(err)
	}
	defer producer.Close()
	by := make([][]broker.Message, cfg.Partitions)
	for i := range n {
		key := ledger.StockKey{Item: fmt.Sprintf("item-%d", i%1_000), Location: "berlin"}
		on := ledger.Day(int(day("2026-01-01")) + i*30/n).String()
		to, _ := cfg.Route(key)
		by[to] = append(by[to], broker.Message{Key: wire.AppendKey(nil, key), Value: []byte(receipt(fmt.Sprintf("T-%d-%d", b.N, i), key.Item, on, i%90+1))})
	}
	for p, messages := range by {
		if _, err := producer.Produce(context.Background(), ledger.Partition(p), messages); err != nil {
			b.Fatal(err)
		}
	}
}
