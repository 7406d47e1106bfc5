package audit

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"amends/internal/ledger"
	"amends/internal/oracle"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
	"amends/internal/verify"
)

// maxState bounds what a saved state unpacks to, bytes.
const maxState = 2 << 30

// errState: the saved state of a partition cannot be gone on from.
var errState = errors.New("the saved state cannot be used")

// resume takes up what the last audit left: the verified cuts, the saved states, and when a full cycle is due. Where a
// partition has none to go on from, the first cycle is a full one.
func (a *Auditor) resume(ctx context.Context) error {
	state, err := a.state(ctx)
	if err != nil {
		return err
	}
	a.basis, a.why, a.status = verify.Basis{}, "", ""
	known := map[ledger.Partition]store.Audit{}
	for _, p := range state.Partitions {
		known[p.Partition] = p
		if at := time.Now().Add(p.Full.Sub(state.Now)); !p.Full.IsZero() && at.After(a.began) {
			a.began = at
		}
		if was := verify.Status(p.Status); a.status == "" || before(was, a.status) {
			a.status = was
		}
	}
	for p := range ledger.Partition(a.Manifest.Config.Partitions) {
		was, ok := known[p]
		if !ok || was.Saved == nil || was.Verified.IsZero() {
			a.full(fmt.Sprintf("partition %d has no saved state", p))
			break
		}
		err := a.load(ctx, was)
		if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
			return err
		}
		if err != nil {
			a.full(err.Error())
			a.Logger.Warn("the audit's saved state cannot be used; everything is recomputed", "err", err)
			break
		}
		a.saved[p] = a.basis.Records(p)
	}
	if a.why == "" && a.status != verify.Pass && a.status != verify.Blocked {
		a.why = "the last cycle before this process ended " + string(a.status)
	}
	a.resumed = true
	return nil
}

// doubt reports whether the verification that tells most of now found a difference and ended after the last full cycle of some
// partition. A cycle that compares only what changed would not look at it, and would say PASS over what is known to differ.
func (a *Auditor) doubt(ctx context.Context) (doubted bool, err error) {
	err = a.Namespace.Look(ctx, func(s *reader.Snapshot) error {
		found, err := drift(ctx, s)
		if a.found = found; err != nil || found.IsZero() {
			return err
		}
		state, err := s.AuditState(ctx)
		for _, p := range state.Partitions {
			doubted = doubted || found.After(p.Full)
		}
		return err
	})
	return doubted, err
}

// overtaken reports whether a verification found a difference since doubt was asked. The snapshot of the cycle since may be older
// than what it found: the cycle must not outweigh it.
func (a *Auditor) overtaken(ctx context.Context) (overtaken bool, err error) {
	err = a.Namespace.Look(ctx, func(s *reader.Snapshot) error {
		found, err := drift(ctx, s)
		overtaken = !found.IsZero() && !found.Equal(a.found)
		return err
	})
	return overtaken, err
}

// drift is when the verification that tells most of now ended, if it found a difference, else zero.
func drift(ctx context.Context, s *reader.Snapshot) (time.Time, error) {
	v, err := s.LastVerification(ctx)
	if err != nil || v == nil || verify.Status(v.Status) != verify.Drift {
		return time.Time{}, err
	}
	return v.Finished, nil
}

// before reports whether status a outweighs b (S10).
func before(a, b verify.Status) bool {
	order := []verify.Status{verify.Unavailable, verify.Incomplete, verify.Drift, verify.Blocked, verify.Pass}
	return slices.Index(order, a) < slices.Index(order, b)
}

// full makes the next cycle a full one from nothing.
func (a *Auditor) full(why string) { a.basis, a.why = verify.Basis{}, why }

// load reads a saved state and makes the basis go on from it.
func (a *Auditor) load(ctx context.Context, was store.Audit) error {
	if was.Saved.Format != oracle.StateFormat {
		return fmt.Errorf("partition %d: %w: format %d, this binary has %d", was.Partition, errState, was.Saved.Format, oracle.StateFormat)
	}
	if was.Server == (store.Server{}) {
		return fmt.Errorf("partition %d: %w: it does not say which server was verified", was.Partition, errState)
	}
	var packed bytes.Buffer
	err := a.Namespace.Look(ctx, func(s *reader.Snapshot) error {
		return s.AuditChunks(ctx, was.Partition, func(b []byte) error {
			packed.Write(b)
			return nil
		})
	})
	if err != nil {
		return err
	}
	if sha256.Sum256(packed.Bytes()) != was.Saved.Checksum {
		return fmt.Errorf("partition %d: %w: its checksum is not that of its %d bytes", was.Partition, errState, packed.Len())
	}
	state, err := io.ReadAll(io.LimitReader(flate.NewReader(&packed), maxState))
	if err != nil {
		return fmt.Errorf("partition %d: %w: %w", was.Partition, errState, err)
	}
	cut := verify.Cut{Server: was.Server, Frontier: was.Frontier, Output: was.Output, Sequence: was.Sequence, Cause: was.Cause}
	if err := a.basis.Resume(a.Manifest.Config, was.Partition, was.Saved.Frontier, state, cut); err != nil {
		return fmt.Errorf("%w: %w", errState, err)
	}
	return nil
}

// save saves the state of every partition that holds more new records than beyond says of all. A state that cannot be saved
// costs the next process a full cycle, no more.
func (a *Auditor) save(ctx context.Context, beyond func(records int64) int64) {
	for p := range ledger.Partition(a.Manifest.Config.Partitions) {
		records := a.basis.Records(p)
		if was, ok := a.saved[p]; ok && records-was <= beyond(records) {
			continue
		}
		frontier, state, ok := a.basis.State(p)
		if !ok {
			continue
		}
		if err := a.keep(ctx, p, frontier, state); err != nil {
			a.Logger.Warn("the audit's state was not saved", "partition", p, "err", err)
			continue
		}
		a.saved[p] = records
	}
}

// keep packs a state and writes it.
func (a *Auditor) keep(ctx context.Context, p ledger.Partition, frontier ledger.Frontier, state []byte) error {
	packed, err := pack(state)
	if err != nil {
		return err
	}
	saved := store.SavedState{Frontier: frontier, Format: oracle.StateFormat, Checksum: sha256.Sum256(packed)}
	var chunks [][]byte
	for rest := packed; len(rest) > 0; {
		n := min(len(rest), store.AuditChunk)
		chunks = append(chunks, rest[:n])
		rest = rest[n:]
	}
	if len(chunks) > store.MaxAuditChunks || len(state) > maxState {
		return fmt.Errorf("%d bytes, packed %d, are more than %d MiB", len(state), len(packed), store.MaxAuditChunks*store.AuditChunk>>20)
	}
	saved.Chunks = int32(len(chunks))
	return a.Namespace.Upkeep().SaveAudit(ctx, p, saved, chunks)
}

func pack(state []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(state)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("pack state: %w", err)
	}
	return packed.Bytes(), nil
}

// How many new records a state may lack.
func none(int64) int64          { return 0 }
func million(int64) int64       { return 1_000_000 }
func twentieth(all int64) int64 { return all / 20 }

// finish saves the state at the end, whatever ended the audit.
func (a *Auditor) finish(ctx context.Context, beyond func(int64) int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saving)
	defer cancel()
	a.save(ctx, beyond)
}
