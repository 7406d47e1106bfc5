package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"amends/internal/ledger"
	"amends/internal/store"
)

// snapshotted decides two of the example's records, stores state as the snapshot of the key at that frontier, and takes the
// partition over.
func snapshotted(t *testing.T, state func(*bench) []byte) *bench {
	t.Helper()
	cfg := worked(t)
	b := newBench(t, cfg, 1<<20)
	b.part.rows = 1
	b.offer(2, record(0, example[0]), record(1, example[1]))
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	owned, err := b.store.Observe(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if bytes := state(b); bytes != nil {
		err := b.store.Store.SaveSnapshots(context.Background(), owned.Token, 0, owned.Frontier, []store.KeySnapshot{{State: bytes, Frontier: owned.Frontier, Rows: 2}})
		if err != nil {
			t.Fatal(err)
		}
	}
	b.take(cfg, 1<<20)
	b.store.loads, b.store.wholes = nil, 0
	return b
}

// stored returns the snapshot that the worker saved of the key.
func stored(b *bench) []byte {
	b.t.Helper()
	h, err := b.store.Load(context.Background(), b.part.token, 0, []ledger.StockKey{{Item: "widget", Location: "berlin"}}, false)
	if err != nil || len(h[0].Snapshot) == 0 {
		b.t.Fatalf("no snapshot: %v", err)
	}
	return h[0].Snapshot
}

// I9: a snapshot is an accelerator, never an authority: with one that is damaged or of a foreign format the key
// comes out of its decisions, and the role goes on with the same bytes.
func TestI9UnusableSnapshotIsNoAuthority(t *testing.T) {
	for name, c := range map[string]struct {
		state  func(*bench) []byte
		wholes int
	}{
		"as saved": {func(*bench) []byte { return nil }, 0},
		"damaged":  {func(b *bench) []byte { s := stored(b); s[len(s)/2] ^= 1; return s }, 1},
		"cut":      {func(b *bench) []byte { s := stored(b); return s[:len(s)-1] }, 1},
		"foreign":  {func(*bench) []byte { return []byte("\x02 something of a later binary") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := snapshotted(t, c.state)
			b.offer(5, record(2, example[2]), record(3, example[3]), record(4, example[4]))
			if err := b.settle(); err != nil {
				t.Fatal(err)
			}
			b.mustEndAsExample()
			if b.store.wholes != c.wholes || len(b.store.loads) != 1+c.wholes {
				t.Errorf("%d loads, %d of them without snapshots, want %d", len(b.store.loads), b.store.wholes, c.wholes)
			}
			if told := strings.Contains(b.log.String(), "snapshot of no use"); told != (c.wholes > 0) {
				t.Errorf("it was told: %v", told)
			}
		})
	}
}

// I22: a batch whose keys have more history than one load gives is loaded in steps, each an operation of its own; failed
// attempts are still counted over them.
// Shows I22.
func TestI22HistoryIsLoadedInSteps(t *testing.T) {
	const keys, rows = 3, store.LoadRows/2 + 1
	cfg := open(t)
	b := newBench(t, cfg, 1<<30)
	b.part.rows = 1 << 40 // no snapshots
	var records []ledger.SourceRecord
	for i := range ledger.Offset(keys * rows) {
		records = append(records, record(i, receipt(fmt.Sprintf("T-%d", i), fmt.Sprint("item-", i%keys), "2026-01-05", 1)))
	}
	const each = 1_000
	for at := 0; at < len(records); at += each {
		part := records[at:min(at+each, len(records))]
		b.offer(ledger.Frontier(at+len(part)), part...)
		if err := b.settle(); err != nil {
			t.Fatal(err)
		}
	}
	b.take(cfg, 1<<30)
	b.store.loads = nil
	b.store.onLoad = func(int) error {
		b.now = b.now.Add(RetryBudget - time.Second)
		return nil
	}
	commits := len(b.store.commits)
	b.store.onCommit = func(n int, _ *ledger.Batch) (bool, error) {
		b.store.onLoad = nil
		if n <= commits+MaxAttempts {
			return false, errors.New("deadlock detected")
		}
		return true, nil
	}
	next := ledger.Offset(len(records))
	for i := range ledger.Offset(keys) {
		records = append(records, record(next+i, receipt(fmt.Sprintf("T-%d", next+i), fmt.Sprint("item-", i), "2026-01-05", 1)))
	}
	b.offer(ledger.Frontier(len(records)), records[next:]...)
	if err := b.settle(); !errors.Is(err, ErrRetries) {
		t.Fatalf("error %v", err)
	}
	if n := len(b.store.loads); n != keys*MaxAttempts {
		t.Errorf("%d loads of %d keys in %d attempts", n, keys, MaxAttempts)
	}
	if n := len(b.store.commits) - commits; n != MaxAttempts {
		t.Errorf("%d commits", n)
	}
}
