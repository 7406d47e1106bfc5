package inspect

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/wire"
)

// scope says what a view show is not.
const scope = "live snapshot, not a verification"

// Snapshots reads one consistent state of the namespace at a time.
type Snapshots interface {
	Snapshot(ctx context.Context, fn func(store.Snapshot) error) error
}

// ShowJSON writes the view as one JSON object: balances, alerts and statuses that are present, every envelope exactly as
// published (tombstones included), positions and protocol errors. Rows stand by partition, item bytes, location bytes,
// day and kind, the status last.
func ShowJSON(ctx context.Context, w io.Writer, namespace string, from Snapshots) error {
	return show(ctx, w, namespace, from, showJSON)
}

// ShowText writes the view as tables, with quantities at the namespace's scale (S2). Identifiers that could deceive a terminal are
// quoted with escapes.
func ShowText(ctx context.Context, w io.Writer, namespace string, scale int32, from Snapshots) error {
	return show(ctx, w, namespace, from, func(v *shown) error { return showText(v, scale) })
}

func show(ctx context.Context, w io.Writer, namespace string, from Snapshots, form func(*shown) error) error {
	out := bufio.NewWriterSize(w, 64<<10)
	err := from.Snapshot(ctx, func(s store.Snapshot) error {
		states, err := s.Partitions(ctx)
		if err != nil {
			return fmt.Errorf("read partitions: %w", err)
		}
		errors, err := s.Violations(ctx)
		if err != nil {
			return fmt.Errorf("read protocol errors: %w", err)
		}
		return form(&shown{ctx: ctx, out: out, snapshot: s, namespace: namespace, states: states, errors: errors})
	})
	if err != nil {
		return fmt.Errorf("show view of %s: %w", namespace, err)
	}
	return out.Flush()
}

// shown is one answer being written; it lives inside one call.
type shown struct {
	ctx       context.Context
	out       *bufio.Writer
	snapshot  store.Snapshot
	namespace string
	states    []store.PartitionState
	errors    []store.Violation
	buf       []byte
}

// rows calls fn for every row of every partition that keep admits.
func (v *shown) rows(keep func(*store.ViewRow) bool, fn func(*store.ViewRow) error) error {
	for _, s := range v.states {
		err := v.snapshot.ViewRows(v.ctx, s.Partition, func(r store.ViewRow) error {
			if !keep(&r) {
				return nil
			}
			return fn(&r)
		})
		if err != nil {
			return fmt.Errorf("read view rows of partition %d: %w", s.Partition, err)
		}
	}
	return nil
}

// present admits the present rows of one kind.
func present(kind ledger.OutputKind) func(*store.ViewRow) bool {
	return func(r *store.ViewRow) bool { return r.Present && r.ID.Kind == kind }
}

func every(*store.ViewRow) bool { return true }

// appendEnvelope appends the envelope that a row holds by its members, exactly as it was published (S8).
func appendEnvelope(dst []byte, namespace string, r *store.ViewRow) []byte {
	return wire.AppendEnvelope(dst, &wire.Envelope{Namespace: namespace, Sequence: r.Sequence, Output: r.ID, Version: r.Version,
		Present: r.Present, Close: r.Close, Previous: r.Previous, Threshold: r.Threshold, Status: r.Status,
		Cause: wire.Cause{Partition: r.Cause.Partition, Offset: r.Cause.Offset, TxnID: r.Cause.TxnID, Revision: r.Cause.Revision},
		Index: int(r.Index), Count: int(r.Count)})
}

// position returns the next output offset and the highest sequence applied, -1 before the first.
func position(s store.PartitionState) (ledger.Frontier, ledger.Sequence) {
	if s.View == nil {
		return 0, -1
	}
	return s.View.Output, s.View.Sequence - 1
}
