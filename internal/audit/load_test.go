package audit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/wire"
)

// loadConfig has open keys, so that the load spreads over both partitions.
var loadConfig = []byte(`{"schema_version":1,"namespace":"demo","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":0,"stock_keys":[],
	"open_keys":{"opening_balance":100,"threshold":60}}`)

// keepLoading publishes corrections, cancellations, duplicates, late and invalid records until ctx ends.
func (w *world) keepLoading(ctx context.Context) {
	producer, err := broker.NewProducer(w.brokers, w.manifest.SourceTopic, w.manifest.Config.SourceIncarnation)
	if err != nil {
		w.Error(err)
		return
	}
	defer producer.Close()
	r := rand.New(rand.NewPCG(1, 2))
	most, rest := 200, 60 // of records a round, and milliseconds between rounds
	for n := 0; ctx.Err() == nil; n++ {
		if n == 60 {
			most, rest = 20, 300 // so that a busy machine reads a history that hardly grows
		}
		batches := map[ledger.Partition][]broker.Message{}
		for range 1 + r.IntN(most) {
			key := ledger.StockKey{Item: fmt.Sprintf("item-%d", r.IntN(40)), Location: "berlin"}
			p, _ := w.manifest.Config.Route(key)
			m := broker.Message{Key: wire.AppendKey(nil, key), Value: []byte(randomValue(r, key.Item, n))}
			batches[p] = append(batches[p], m)
			if r.IntN(10) == 0 {
				batches[p] = append(batches[p], m) // a duplicate changes nothing
			}
		}
		for p, messages := range batches {
			if _, err := producer.Produce(context.WithoutCancel(ctx), p, messages); err != nil {
				w.Error(err)
				return
			}
		}
		time.Sleep(time.Duration(r.IntN(rest)) * time.Millisecond)
	}
}

// randomValue is a receipt or an issue, new or a correction of one of a few; a cancellation; or nothing valid. Revisions are
// the round, so that no key stays BLOCKED.
func randomValue(r *rand.Rand, item string, round int) string {
	txn := fmt.Sprintf("T-%d", r.IntN(2000))
	switch r.IntN(12) {
	case 0:
		return "poison"
	case 1:
		return fmt.Sprintf(`{"schema":1,"txn_id":"%s","revision":%d,"state":"cancelled","item":"%s","location":"berlin"}`, txn, 1_000_000*round+r.IntN(1_000_000)+1, item)
	}
	kind := "receipt"
	if r.IntN(2) == 0 {
		kind = "issue"
	}
	return fmt.Sprintf(`{"schema":1,"txn_id":"%s","revision":%d,"state":"active","item":"%s","location":"berlin","day":"2026-%02d-%02d","kind":"%s","quantity":%d}`,
		txn, 1_000_000*round+r.IntN(1_000_000)+1, item, 1+r.IntN(2), 1+r.IntN(10), kind, 1+r.IntN(50))
}
