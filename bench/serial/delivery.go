package serial

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/wire"
)

// Publisher sends one record, waits for the broker's acknowledgement and returns its offset.
type Publisher func(ctx context.Context, key, value []byte) (ledger.Offset, error)

// PublishNext publishes the envelope of sequence, if it is committed, and records its receipt; it reports whether it was there.
func (p *Pipeline) PublishNext(ctx context.Context, partition ledger.Partition, sequence ledger.Sequence, publish Publisher) (bool, error) {
	var key, value []byte
	err := p.pool.QueryRow(ctx, nextPending, partition, sequence).Scan(&sequence, &key, &value)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read outbox: %w", err)
	}
	offset, err := publish(ctx, key, value)
	if err != nil {
		return false, fmt.Errorf("publish sequence %d: %w", sequence, err)
	}
	if _, err := p.pool.Exec(ctx, writeReceipt, partition, sequence, offset); err != nil {
		return false, fmt.Errorf("write receipt: %w", err)
	}
	return true, nil
}

// Materialize applies one published envelope to the view and moves its frontier, in one transaction.
func (p *Pipeline) Materialize(ctx context.Context, rec ledger.SourceRecord) error {
	env, err := wire.DecodeEnvelope(rec.Value)
	if err != nil {
		return fmt.Errorf("decode envelope: %w", err)
	}
	return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		var frontier ledger.Frontier
		if err := tx.QueryRow(ctx, lockView, rec.Partition).Scan(&frontier); err != nil {
			return fmt.Errorf("lock view: %w", err)
		}
		if _, err := tx.Exec(ctx, upsertView, outputID(env.Output), env.Version, env.Present, rec.Value); err != nil {
			return fmt.Errorf("upsert view: %w", err)
		}
		if _, err := tx.Exec(ctx, advanceView, rec.Partition, rec.Offset+1); err != nil {
			return fmt.Errorf("advance view: %w", err)
		}
		return nil
	})
}
