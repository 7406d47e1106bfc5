package serial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/wire"
)

// ErrUnsupported is returned for a record that the baseline does not represent: a rejected one or a count.
var ErrUnsupported = errors.New("not supported by the serial baseline")

// Pipeline is the baseline over one database, in a schema of its own.
type Pipeline struct {
	pool    *pgxpool.Pool
	config  *manifest.Config
	decoder []*wire.Decoder
}

// Open creates the baseline's schema in the database at url, with every frontier at 0.
func Open(ctx context.Context, url string, config *manifest.Config) (*Pipeline, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	p := &Pipeline{pool: pool, config: config}
	if _, err := pool.Exec(ctx, schemaSQL); err != nil {
		pool.Close()
		return nil, fmt.Errorf("create schema serial: %w", err)
	}
	for i := range config.Partitions {
		p.decoder = append(p.decoder, wire.NewDecoder(config))
		if _, err := pool.Exec(ctx, `INSERT INTO serial.partitions VALUES ($1, 0, 0)`, i); err != nil {
			pool.Close()
			return nil, fmt.Errorf("insert partition: %w", err)
		}
		if _, err := pool.Exec(ctx, `INSERT INTO serial.view_positions VALUES ($1, 0)`, i); err != nil {
			pool.Close()
			return nil, fmt.Errorf("insert view position: %w", err)
		}
	}
	return p, nil
}

// Close releases the connections.
func (p *Pipeline) Close() { p.pool.Close() }

// Seed writes a key's state straight into the store, before the clock starts.
func (p *Pipeline) Seed(ctx context.Context, key ledger.StockKey, s *State) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	if _, err := p.pool.Exec(ctx, writeState, []byte(key.Item), []byte(key.Location), raw); err != nil {
		return fmt.Errorf("seed state: %w", err)
	}
	rows := make([][]any, 0, len(s.Outputs))
	views := make([][]any, 0, len(s.Outputs))
	for _, o := range s.Outputs {
		id := outputID(ledger.OutputID{Key: key, Day: o.Day, Kind: o.Kind})
		rows = append(rows, []any{id, int64(o.Version), o.Present, payload(o)})
		views = append(views, []any{id, int64(o.Version), o.Present, []byte{}})
	}
	if _, err := p.pool.CopyFrom(ctx, pgx.Identifier{"serial", "outputs"}, []string{"output_id", "version", "present", "payload"}, pgx.CopyFromRows(rows)); err != nil {
		return fmt.Errorf("seed outputs: %w", err)
	}
	if _, err := p.pool.CopyFrom(ctx, pgx.Identifier{"serial", "view_rows"}, []string{"output_id", "version", "present", "envelope"}, pgx.CopyFromRows(views)); err != nil {
		return fmt.Errorf("seed view: %w", err)
	}
	return nil
}

// Start sets a partition's frontier, before the clock starts.
func (p *Pipeline) Start(ctx context.Context, partition ledger.Partition, frontier ledger.Frontier) error {
	_, err := p.pool.Exec(ctx, advance, partition, frontier, 0)
	return err
}

// Apply commits what one record changes, in one transaction.
func (p *Pipeline) Apply(ctx context.Context, rec ledger.SourceRecord) error {
	d := p.decoder[rec.Partition].Decode(rec)
	if d.Rejection != 0 || d.Assertion.Payload.Kind.IsCount() {
		return fmt.Errorf("record %d/%d: %w", rec.Partition, rec.Offset, ErrUnsupported)
	}
	return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		var sequence ledger.Sequence
		if err := tx.QueryRow(ctx, lockPartition, rec.Partition, rec.Offset).Scan(&sequence); err != nil {
			return fmt.Errorf("lock partition: %w", err)
		}
		key := d.Assertion.Key
		var raw []byte
		var s State
		err := tx.QueryRow(ctx, readState, []byte(key.Item), []byte(key.Location)).Scan(&raw)
		if err == nil {
			err = json.Unmarshal(raw, &s)
		}
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read state: %w", err)
		}
		next, err := p.emit(ctx, tx, &s, d, sequence)
		if err != nil {
			return err
		}
		if raw, err = json.Marshal(&s); err != nil {
			return fmt.Errorf("encode state: %w", err)
		}
		if _, err := tx.Exec(ctx, writeState, []byte(key.Item), []byte(key.Location), raw); err != nil {
			return fmt.Errorf("write state: %w", err)
		}
		if _, err := tx.Exec(ctx, advance, rec.Partition, rec.Offset+1, next); err != nil {
			return fmt.Errorf("advance frontier: %w", err)
		}
		return nil
	})
}

// emit applies the assertion to the state and writes its changed outputs and their envelopes; it returns the next sequence.
func (p *Pipeline) emit(ctx context.Context, tx pgx.Tx, s *State, d wire.Decoded, sequence ledger.Sequence) (ledger.Sequence, error) {
	key := d.Assertion.Key
	terms, _ := p.config.Terms(key)
	if !s.apply(d.Assertion) {
		return sequence, nil
	}
	changed := s.refold(terms.OpeningBalance, terms.Threshold)
	count := len(changed)
	if !s.Announced {
		count++
	}
	env := wire.Envelope{Namespace: p.config.Namespace, Count: count,
		Cause: wire.Cause{Partition: d.Record.Partition, Offset: d.Record.Offset, TxnID: d.Assertion.TxnID, Revision: d.Assertion.Revision}}
	for i, o := range changed {
		env.Output = ledger.OutputID{Key: key, Day: o.Day, Kind: o.Kind}
		env.Sequence, env.Index, env.Version, env.Present = sequence, i, o.Version, o.Present
		env.Close, env.Previous, env.Threshold = o.Close, o.Previous, 0
		if o.Kind == ledger.Alert && o.Present {
			env.Threshold = *terms.Threshold
		}
		if err := p.write(ctx, tx, &env, payload(o)); err != nil {
			return 0, err
		}
		sequence++
	}
	if !s.Announced {
		s.Announced = true
		env.Output = ledger.OutputID{Key: key, Kind: ledger.TrustStatus}
		env.Sequence, env.Index, env.Version, env.Present = sequence, count-1, 1, true
		env.Close, env.Previous, env.Threshold, env.Status = 0, 0, 0, &ledger.Status{}
		if err := p.write(ctx, tx, &env, []byte(`{"status":"READY"}`)); err != nil {
			return 0, err
		}
		sequence++
	}
	return sequence, nil
}

func (p *Pipeline) write(ctx context.Context, tx pgx.Tx, env *wire.Envelope, payload []byte) error {
	if _, err := tx.Exec(ctx, upsertOutput, outputID(env.Output), env.Version, env.Present, payload); err != nil {
		return fmt.Errorf("upsert output: %w", err)
	}
	key, value := wire.AppendKey(nil, env.Output.Key), wire.AppendEnvelope(nil, env)
	if _, err := tx.Exec(ctx, insertOutbox, env.Cause.Partition, env.Sequence, key, value); err != nil {
		return fmt.Errorf("insert outbox: %w", err)
	}
	return nil
}

// outputID is the stored identity of an output: the key's canonical encoding, the day and the kind.
func outputID(id ledger.OutputID) []byte {
	b := wire.AppendKey(nil, id.Key)
	b = append(b, ' ', '0'+byte(id.Kind))
	if id.Day != 0 {
		b = id.Day.AppendTo(b)
	}
	return b
}

func payload(o Output) []byte {
	if !o.Present {
		return nil
	}
	b, err := json.Marshal(map[string]int64{"close": o.Close, "previous": o.Previous})
	if err != nil {
		panic(err) // a map of integers always encodes
	}
	return b
}
