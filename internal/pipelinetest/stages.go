package pipelinetest

import (
	"testing"
	"time"

	"amends/internal/broker"
	"amends/internal/engine"
	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/wire"
)

const lease = time.Minute

// Work decides and commits every source record there is.
func (w *World) Work(t testing.TB) {
	t.Helper()
	ctx, cfg := t.Context(), w.Manifest.Config
	for p := range ledger.Partition(cfg.Partitions) {
		owned, err := w.NS.Claim(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		records, end := w.read(ctx, t, w.Manifest.SourceTopic, cfg.SourceIncarnation, p, owned.Frontier)
		decoder := wire.NewDecoder(cfg)
		decoded := make([]wire.Decoded, len(records))
		for i := range records {
			decoded[i] = decoder.Decode(records[i])
		}
		states := engine.NewStates(cfg, p, 1<<30)
		for missing := states.Missing(decoded); len(missing) > 0; {
			histories, err := w.NS.Load(ctx, owned.Token, p, missing, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range histories {
				if err := states.Restore(h.Key, h.KeyID, h.Known, h.Snapshot, h.Decisions); err != nil {
					t.Fatal(err)
				}
			}
			missing = missing[len(histories):]
		}
		batch, err := engine.Step(states, engine.Position{Frontier: owned.Frontier, Sequence: owned.Sequence}, decoded, end)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.NS.Commit(ctx, owned.Token, &batch); err != nil {
			t.Fatal(err)
		}
	}
}

// Relay publishes every pending output and writes its receipts.
func (w *World) Relay(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	producer := w.produces(t, w.Manifest.Output.Topic, w.Manifest.Output.Incarnation)
	for p := range ledger.Partition(w.Manifest.Config.Partitions) {
		l, err := w.NS.AcquireService(ctx, store.Relay, p, "pipelinetest", lease)
		if err != nil {
			t.Fatal(err)
		}
		at, err := w.NS.RelayPosition(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		decisions, err := w.NS.Pending(ctx, p, at, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		encoder := wire.NewEncoder(w.Manifest.Config, p)
		var messages []broker.Message
		next := at.Sequence
		for i := range decisions {
			for c := range decisions[i].Changes {
				if decisions[i].Sequence+ledger.Sequence(c) < at.Sequence {
					continue
				}
				messages = append(messages, broker.Message{Key: encoder.Key(nil, &decisions[i]), Value: encoder.Append(nil, &decisions[i], c)})
				next++
			}
		}
		if len(messages) > 0 {
			offsets, err := producer.Produce(ctx, p, messages)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.NS.Acknowledge(ctx, l, store.Receipt{Partition: p, First: at.Sequence, Next: next, Offset: offsets[0]}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.NS.ReleaseService(ctx, l); err != nil {
			t.Fatal(err)
		}
	}
}

// View applies every published output: the last envelope of each output makes its row.
func (w *World) View(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	for p := range ledger.Partition(w.Manifest.Config.Partitions) {
		l, err := w.NS.AcquireService(ctx, store.View, p, "pipelinetest", lease)
		if err != nil {
			t.Fatal(err)
		}
		at, err := w.NS.ViewPosition(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		records, end := w.read(ctx, t, w.Manifest.Output.Topic, w.Manifest.Output.Incarnation, p, at.Output)
		page := store.ViewPage{Partition: p, Before: at, Next: at}
		page.Next.Output = end
		rows := map[ledger.OutputID]int{}
		for _, r := range records {
			e, err := wire.DecodeEnvelope(r.Value)
			if err != nil {
				t.Fatal(err)
			}
			if e.Sequence < page.Next.Sequence {
				continue
			}
			page.Next.Sequence, page.Next.Cause = e.Sequence+1, e.Cause.Offset
			if i, ok := rows[e.Output]; ok {
				page.Changes[i].Row = row(&e, r.Value)
				continue
			}
			rows[e.Output] = len(page.Changes)
			page.Changes = append(page.Changes, store.ViewChange{Before: e.Version - 1, Row: row(&e, r.Value)})
		}
		if err := w.NS.ApplyViewInput(ctx, l, &page); err != nil {
			t.Fatal(err)
		}
		if err := w.NS.ReleaseService(ctx, l); err != nil {
			t.Fatal(err)
		}
	}
}

// Stop stops a partition of the view with a violation at its frontier.
func (w *World) Stop(t testing.TB, p ledger.Partition, v store.Violation) {
	t.Helper()
	ctx := t.Context()
	l, err := w.NS.AcquireService(ctx, store.View, p, "pipelinetest", lease)
	if err != nil {
		t.Fatal(err)
	}
	at, err := w.NS.ViewPosition(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	page := store.ViewPage{Partition: p, Before: at, Next: at, Stop: &v}
	page.Next.Stopped = true
	if err := w.NS.ApplyViewInput(ctx, l, &page); err != nil {
		t.Fatal(err)
	}
}

func row(e *wire.Envelope, value []byte) store.ViewRow {
	return store.ViewRow{ID: e.Output, Status: e.Status, Sequence: e.Sequence, Version: e.Version, Close: e.Close, Previous: e.Previous,
		Threshold: e.Threshold, Digest: wire.EnvelopeDigest(value), Index: int32(e.Index), Count: int32(e.Count), Present: e.Present,
		Cause: store.Cause{Partition: e.Cause.Partition, Offset: e.Cause.Offset, TxnID: e.Cause.TxnID, Revision: e.Cause.Revision}}
}
