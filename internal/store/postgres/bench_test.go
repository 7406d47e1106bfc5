package postgres_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/store"
	"amends/internal/store/postgres"
)

const benchDay = ledger.Day(739_617) // 2026-01-01

// benchNamespace opens a bound namespace with open keys on a durable server.
func benchNamespace(b *testing.B) (*postgres.Namespace, string) {
	b.Helper()
	url := pgtest.New(b)
	db := open(b, url)
	cfg, err := manifest.Default("bench", "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		b.Fatal(err)
	}
	n, err := db.Init(context.Background(), cfg, "source")
	if err != nil {
		b.Fatal(err)
	}
	err = n.Bind(context.Background(), manifest.Output{Topic: "output", Incarnation: "kafka:ff112233445566778899aabbccddeeff", Partitions: 2})
	if err != nil {
		b.Fatal(err)
	}
	return n, url
}

// feed makes batches of records over keys, each with that many changed outputs.
type feed struct {
	digest  [32]byte
	offset  ledger.Offset
	next    ledger.Sequence
	keys    int
	outputs int
}

func (f *feed) key(i int) ledger.StockKey {
	return ledger.StockKey{Item: fmt.Sprintf("item-%05d", i), Location: "berlin"}
}

func (f *feed) batch(records int) *ledger.Batch {
	batch := &ledger.Batch{Expected: ledger.Frontier(f.offset), FirstSequence: f.next, Decisions: make([]ledger.Decision, records)}
	for i := range batch.Decisions {
		at := int(f.offset) % f.keys
		d := &batch.Decisions[i]
		*d = ledger.Decision{Offset: f.offset, Sequence: f.next, Class: ledger.Applied, KeyID: ledger.KeyID(at), NewKey: int(f.offset) < f.keys,
			Timestamp: 1_700_000_000_000, Assertion: ledger.Assertion{Key: f.key(at), TxnID: fmt.Sprintf("T-%09d", f.offset), Revision: 1,
				Payload: ledger.Payload{State: ledger.Active, Kind: ledger.Receipt, Quantity: 17, Day: benchDay}}}
		f.digest = sha256.Sum256(f.digest[:])
		copy(d.Digest[:], f.digest[:])
		for o := range f.outputs {
			d.Changes = append(d.Changes, ledger.Change{Kind: ledger.Balance, Day: benchDay + ledger.Day(o), Present: true,
				Version: ledger.Version(1 + int(f.offset)/f.keys), Close: int64(f.digest[o%32])})
		}
		f.offset++
		f.next += ledger.Sequence(f.outputs)
	}
	batch.Next, batch.NextSequence = ledger.Frontier(f.offset), f.next
	batch.Work = ledger.Work{Records: int64(records), Accepted: int64(records), Changed: int64(records * f.outputs)}
	return batch
}

func BenchmarkCommit(b *testing.B) {
	for _, c := range []struct{ records, outputs int }{{1, 1}, {500, 1}, {500, 30}} {
		b.Run(fmt.Sprintf("records=%d/outputs=%d", c.records, c.outputs), func(b *testing.B) {
			n, url := benchNamespace(b)
			ctx := context.Background()
			o, err := n.Claim(ctx, 0)
			if err != nil {
				b.Fatal(err)
			}
			f := &feed{keys: 1_000, outputs: c.outputs}
			for range 4 {
				if err := n.Commit(ctx, o.Token, f.batch(500)); err != nil {
					b.Fatal(err)
				}
			}
			before, cpu := walBytes(b, url), serverCPU(b, url)
			var spent time.Duration
			for b.Loop() {
				batch := f.batch(c.records)
				began := time.Now()
				if err := n.Commit(ctx, o.Token, batch); err != nil {
					b.Fatal(err)
				}
				spent += time.Since(began)
			}
			records := float64(b.N * c.records)
			b.ReportMetric(records/spent.Seconds(), "records/s")
			b.ReportMetric((serverCPU(b, url)-cpu)/records, "server-us/record")
			b.ReportMetric(float64(walBytes(b, url)-before)/records, "WAL-B/record")
		})
	}
}

// serverCPU returns the processor time in microseconds that the backends of this database have used: on a busy machine it
// says more than the clock. It needs a superuser and a server on this machine; 0 otherwise.
func serverCPU(b *testing.B, url string) (us float64) {
	b.Helper()
	const sql = `SELECT coalesce(sum((split_part(s, ' ', 14)::bigint + split_part(s, ' ', 15)::bigint) * 10000), 0)::float8
		FROM pg_stat_activity AS a, pg_read_file('/proc/' || a.pid || '/stat', 0, 10000, true) AS s WHERE a.datname = current_database()`
	if err := connect(b, url).QueryRow(context.Background(), sql).Scan(&us); err != nil {
		b.Logf("no processor time: %v", err)
	}
	return us
}

func walBytes(b *testing.B, url string) (n int64) {
	b.Helper()
	if err := connect(b, url).QueryRow(context.Background(), `SELECT pg_current_wal_insert_lsn() - '0/0'`).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

func BenchmarkLoad(b *testing.B) {
	n, url := benchNamespace(b)
	ctx := context.Background()
	o, err := n.Claim(ctx, 0)
	if err != nil {
		b.Fatal(err)
	}
	f := &feed{keys: 200, outputs: 2}
	for range 100 {
		if err := n.Commit(ctx, o.Token, f.batch(1_000)); err != nil {
			b.Fatal(err)
		}
	}
	execSQL(b, connect(b, url), "VACUUM ANALYZE amends.journal")
	keys := make([]ledger.StockKey, f.keys)
	for i := range keys {
		keys[i] = f.key(i)
	}
	rows, cpu := 0, serverCPU(b, url)
	for b.Loop() {
		for missing := keys; len(missing) > 0; {
			histories, err := n.Load(ctx, o.Token, 0, missing, false)
			if err != nil {
				b.Fatal(err)
			}
			for _, h := range histories {
				rows += len(h.Decisions)
			}
			missing = missing[len(histories):]
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric((serverCPU(b, url)-cpu)/float64(rows), "server-us/row")
}

func BenchmarkPending(b *testing.B) {
	n, _ := benchNamespace(b)
	ctx := context.Background()
	o, err := n.Claim(ctx, 0)
	if err != nil {
		b.Fatal(err)
	}
	f := &feed{keys: 1_000, outputs: 2}
	for range 20 {
		if err := n.Commit(ctx, o.Token, f.batch(1_000)); err != nil {
			b.Fatal(err)
		}
	}
	outputs := 0
	for b.Loop() {
		pending, err := n.Pending(ctx, 0, store.RelayPosition{}, 10_000)
		if err != nil {
			b.Fatal(err)
		}
		for _, d := range pending {
			outputs += len(d.Changes)
		}
	}
	b.ReportMetric(float64(outputs)/b.Elapsed().Seconds(), "outputs/s")
}

func BenchmarkApplyViewInput(b *testing.B) {
	for _, c := range []struct {
		name  string
		rows  int
		fresh bool
	}{{"replace=1", 1, false}, {"replace=500", 500, false}, {"replace=5000", 5_000, false}, {"new=5000", 5_000, true}} {
		b.Run(c.name, func(b *testing.B) {
			n, url := benchNamespace(b)
			ctx := context.Background()
			l, err := n.AcquireService(ctx, store.View, 0, "bench", time.Hour)
			if err != nil {
				b.Fatal(err)
			}
			f := &feed{keys: 200}
			at := store.ViewPosition{Cause: -1}
			const stored = 40_000
			apply := func(first, count int) {
				page := viewPage(f, at, first, count, stored)
				if err := n.ApplyViewInput(ctx, l, page); err != nil {
					b.Fatal(err)
				}
				at = page.Next
			}
			for i := 0; i < stored; i += 5_000 {
				apply(i, 5_000)
			}
			execSQL(b, connect(b, url), "VACUUM ANALYZE amends.view_rows")
			before, cpu := walBytes(b, url), serverCPU(b, url)
			var spent time.Duration
			next, rows := stored, 0
			for b.Loop() {
				page := viewPage(f, at, next, c.rows, stored)
				if c.fresh {
					page = viewPage(f, at, next, c.rows, 1<<62)
				}
				began := time.Now()
				if err := n.ApplyViewInput(ctx, l, page); err != nil {
					b.Fatal(err)
				}
				spent += time.Since(began)
				at, next, rows = page.Next, next+c.rows, rows+c.rows
			}
			b.ReportMetric(float64(rows)/spent.Seconds(), "rows/s")
			b.ReportMetric((serverCPU(b, url)-cpu)/float64(rows), "server-us/row")
			b.ReportMetric(float64(walBytes(b, url)-before)/float64(rows), "WAL-B/row")
		})
	}
}

// viewPage gives outputs first.. one more version each; the output number repeats after stored.
func viewPage(f *feed, at store.ViewPosition, first, count, stored int) *store.ViewPage {
	page := &store.ViewPage{Before: at, Next: at}
	for i := range count {
		number := (first + i) % stored
		version := ledger.Version((first+i)/stored) + 1
		r := store.ViewRow{ID: ledger.OutputID{Key: f.key(number % f.keys), Day: benchDay + ledger.Day(number/f.keys), Kind: ledger.Balance},
			Sequence: at.Sequence + ledger.Sequence(i), Version: version, Present: true, Close: int64(number), Digest: int64(number) * 1e12, Count: 1,
			Cause: store.Cause{TxnID: "T-000000001", Offset: at.Cause + 1 + ledger.Offset(i), Revision: 1}}
		page.Changes = append(page.Changes, store.ViewChange{Row: r, Before: version - 1})
	}
	page.Next.Sequence += ledger.Sequence(count)
	page.Next.Output += ledger.Frontier(count)
	page.Next.Cause += ledger.Offset(count)
	return page
}

// BenchmarkCopyNarrow is what the server does at best: COPY of a narrow table, for comparison in one run.
func BenchmarkCopyNarrow(b *testing.B) {
	conn := connect(b, pgtest.New(b))
	execSQL(b, conn, "CREATE TABLE narrow (n bigint PRIMARY KEY, v bigint)")
	next, rows := int64(0), 500
	for b.Loop() {
		source := pgx.CopyFromSlice(rows, func(int) ([]any, error) { next++; return []any{next, next}, nil })
		if _, err := conn.CopyFrom(context.Background(), pgx.Identifier{"narrow"}, []string{"n", "v"}, source); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(next)/b.Elapsed().Seconds(), "rows/s")
}
