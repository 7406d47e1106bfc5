package trigger

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/wire"
)

// MaxBatch is the number of records in one transaction.
const MaxBatch = 500

// ErrUnsupported is returned for a record that the peer does not represent: a rejected one or a count.
var ErrUnsupported = errors.New("not supported by the trigger peer")

var (
	//go:embed schema.sql
	schemaSQL string
	//go:embed batch.sql
	batchSQL string
)

const createTrigger = `CREATE TRIGGER repair AFTER INSERT OR UPDATE ON peer.movements FOR EACH ROW EXECUTE FUNCTION peer.repair()`

// Pipeline is the peer over one database, in a schema of its own. A partition is used by one goroutine at a time.
type Pipeline struct {
	pool    *pgxpool.Pool
	keys    map[ledger.StockKey]int32
	decoder []*wire.Decoder
}

// Movement is the authoritative assertion of a transaction. Delta is in units, negative for an issue.
type Movement struct {
	TxnID    string
	Revision ledger.Revision
	Day      ledger.Day
	Delta    int64
	Active   bool
}

// Balance is one row of the view, with the number of active movements of its day.
type Balance struct {
	Day       ledger.Day
	Close     int64
	Movements int32
}

// Open creates the peer's schema in the database at url, for the given keys, with every frontier at 0. Triggers fire
// from Ready on.
func Open(ctx context.Context, url string, config *manifest.Config, keys []ledger.StockKey) (*Pipeline, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	p := &Pipeline{pool: pool, keys: make(map[ledger.StockKey]int32, len(keys))}
	if err := p.create(ctx, config, keys); err != nil {
		pool.Close()
		return nil, err
	}
	return p, nil
}

func (p *Pipeline) create(ctx context.Context, config *manifest.Config, keys []ledger.StockKey) error {
	if _, err := p.pool.Exec(ctx, schemaSQL); err != nil {
		return fmt.Errorf("create schema peer: %w", err)
	}
	for i := range config.Partitions {
		p.decoder = append(p.decoder, wire.NewDecoder(config))
		if _, err := p.pool.Exec(ctx, `INSERT INTO peer.offsets VALUES ($1, 0)`, i); err != nil {
			return fmt.Errorf("insert offset: %w", err)
		}
	}
	rows := make([][]any, 0, len(keys))
	for i, k := range keys {
		terms, ok := config.Terms(k)
		if !ok {
			return fmt.Errorf("key %q: %w", k, ErrUnsupported)
		}
		p.keys[k] = int32(i)
		rows = append(rows, []any{int32(i), []byte(k.Item), []byte(k.Location), terms.OpeningBalance, terms.Threshold})
	}
	columns := []string{"key_id", "item", "location", "opening", "threshold"}
	if _, err := p.pool.CopyFrom(ctx, pgx.Identifier{"peer", "keys"}, columns, pgx.CopyFromRows(rows)); err != nil {
		return fmt.Errorf("insert keys: %w", err)
	}
	return nil
}

// Close releases the connections.
func (p *Pipeline) Close() { p.pool.Close() }

// Seed writes a key's movements and closes straight into the tables, before Ready.
func (p *Pipeline) Seed(ctx context.Context, key ledger.StockKey, movements []Movement, balances []Balance) error {
	id := p.keys[key]
	source := pgx.CopyFromSlice(len(movements), func(i int) ([]any, error) {
		m := movements[i]
		return []any{id, []byte(m.TxnID), int64(m.Revision), int32(m.Day), m.Delta, m.Active}, nil
	})
	columns := []string{"key_id", "txn_id", "revision", "day", "delta", "active"}
	if _, err := p.pool.CopyFrom(ctx, pgx.Identifier{"peer", "movements"}, columns, source); err != nil {
		return fmt.Errorf("seed movements: %w", err)
	}
	closes := pgx.CopyFromSlice(len(balances), func(i int) ([]any, error) {
		return []any{id, int32(balances[i].Day), balances[i].Close, balances[i].Movements}, nil
	})
	if _, err := p.pool.CopyFrom(ctx, pgx.Identifier{"peer", "balances"}, []string{"key_id", "day", "close", "movements"}, closes); err != nil {
		return fmt.Errorf("seed balances: %w", err)
	}
	return nil
}

// Ready creates the trigger, sets the frontiers and analyzes the tables, before the clock starts.
func (p *Pipeline) Ready(ctx context.Context, frontiers []ledger.Frontier) error {
	for i, f := range frontiers {
		if _, err := p.pool.Exec(ctx, `UPDATE peer.offsets SET frontier = $2 WHERE partition = $1`, i, f); err != nil {
			return fmt.Errorf("set frontier: %w", err)
		}
	}
	for _, sql := range []string{createTrigger, `ANALYZE peer.movements`, `ANALYZE peer.balances`} {
		if _, err := p.pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("prepare tables: %w", err)
		}
	}
	return nil
}

// Apply commits up to MaxBatch consecutive records of one partition in one transaction, with the offset after them.
func (p *Pipeline) Apply(ctx context.Context, recs []ledger.SourceRecord) error {
	if len(recs) == 0 {
		return nil
	}
	b, err := p.collect(recs)
	if err != nil {
		return err
	}
	last := recs[len(recs)-1]
	return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, batchSQL, b.keys, b.txns, b.revisions, b.days, b.deltas, b.active); err != nil {
			return fmt.Errorf("upsert movements: %w", err)
		}
		if _, err := tx.Exec(ctx, `UPDATE peer.offsets SET frontier = $2 WHERE partition = $1`, last.Partition, last.Offset+1); err != nil {
			return fmt.Errorf("advance frontier: %w", err)
		}
		return nil
	})
}

type columns struct {
	keys      []int32
	txns      [][]byte
	revisions []int64
	days      []int32
	deltas    []int64
	active    []bool
}

// collect decodes records into columns; of several revisions of one transaction it keeps the highest, since one
// statement cannot touch a row twice.
func (p *Pipeline) collect(recs []ledger.SourceRecord) (columns, error) {
	type identity struct {
		txn string
		key int32
	}
	var b columns
	at := make(map[identity]int, len(recs))
	for _, rec := range recs {
		d := p.decoder[rec.Partition].Decode(rec)
		a := d.Assertion
		if d.Rejection != 0 || a.Payload.Kind.IsCount() {
			return b, fmt.Errorf("record %d/%d: %w", rec.Partition, rec.Offset, ErrUnsupported)
		}
		id := identity{a.TxnID, p.keys[a.Key]}
		i, seen := at[id]
		if !seen {
			i = len(b.keys)
			at[id] = i
			b.keys, b.txns = append(b.keys, id.key), append(b.txns, []byte(id.txn))
			b.revisions, b.days = append(b.revisions, 0), append(b.days, 0)
			b.deltas, b.active = append(b.deltas, 0), append(b.active, false)
		}
		if int64(a.Revision) <= b.revisions[i] {
			continue
		}
		b.revisions[i], b.days[i] = int64(a.Revision), int32(a.Payload.Day)
		b.deltas[i], b.active[i] = a.Payload.Units(), a.Payload.State == ledger.Active
	}
	return b, nil
}

// Balances calls fn for every close of the view, by key and day.
func (p *Pipeline) Balances(ctx context.Context, fn func(ledger.StockKey, Balance)) error {
	const query = `SELECT k.item, k.location, b.day, b.close, b.movements FROM peer.balances b JOIN peer.keys k USING (key_id)
		ORDER BY k.item, k.location, b.day`
	rows, err := p.pool.Query(ctx, query)
	if err != nil {
		return fmt.Errorf("read balances: %w", err)
	}
	var item, location []byte
	var b Balance
	_, err = pgx.ForEachRow(rows, []any{&item, &location, &b.Day, &b.Close, &b.Movements}, func() error {
		fn(ledger.StockKey{Item: string(item), Location: string(location)}, b)
		return nil
	})
	return err
}
