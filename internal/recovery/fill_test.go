package recovery

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"amends/internal/ledger"
	"amends/internal/store"
)

// at is a partition that has decided up to a frontier, one message an offset, of which some are in the view with their receipts.
func at(frontier ledger.Frontier, delivered ledger.Sequence) store.PartitionState {
	return store.PartitionState{Owned: store.Owned{Frontier: frontier, Sequence: ledger.Sequence(frontier)},
		View: &store.ViewPosition{Sequence: delivered}, Relay: &store.RelayPosition{Sequence: delivered}}
}

// A rebuild waits while anything moves and while the database is away for a while, and ends once nothing has moved for
// stallAfter: a database that stays away is nothing that moves.
func TestWaitingEndsWhenNothingMoves(t *testing.T) {
	t.Parallel()
	away := errors.Join(store.ErrUnavailable, errors.New("the database is away"))
	for name, c := range map[string]struct {
		look  func(since time.Duration) (store.PartitionState, error)
		took  time.Duration // at least, and no more than two looks longer
		fails func(error) bool
	}{
		"nothing moves": {took: stallAfter, look: func(time.Duration) (store.PartitionState, error) { return at(3, 1), nil },
			fails: func(err error) bool {
				var stalled *StalledError
				return errors.As(err, &stalled) && stalled.End == 5 && stalled.State.Owned.Frontier == 3 && stalled.Phase == store.RebuildRefold
			}},
		"the database stays away": {took: stallAfter, look: func(time.Duration) (store.PartitionState, error) { return store.PartitionState{}, away },
			fails: func(err error) bool { return errors.Is(err, store.ErrUnavailable) }},
		"a step a minute": {took: 5 * time.Minute, look: func(since time.Duration) (store.PartitionState, error) {
			return at(ledger.Frontier(since/time.Minute), 0), nil
		}, fails: func(err error) bool { return err == nil }},
		"delivery alone moves, then nothing": {took: 3*time.Minute + stallAfter, look: func(since time.Duration) (store.PartitionState, error) {
			return at(3, ledger.Sequence(min(since/time.Minute, 3))), nil
		}, fails: func(err error) bool { var stalled *StalledError; return errors.As(err, &stalled) }},
		"away, and it moved meanwhile": {took: stallAfter + time.Minute, look: func(since time.Duration) (store.PartitionState, error) {
			switch {
			case since < time.Minute:
				return at(3, 0), nil
			case since < stallAfter-time.Second:
				return store.PartitionState{}, away
			case since < stallAfter+time.Minute:
				return at(4, 0), nil
			}
			return at(5, 0), nil
		}, fails: func(err error) bool { return err == nil }},
		"the view has stopped": {look: func(time.Duration) (store.PartitionState, error) {
			s := at(5, 0)
			s.View.Stopped = true
			return s, nil
		}, fails: func(err error) bool { return errors.Is(err, store.ErrProtocol) }},
		"another error": {look: func(time.Duration) (store.PartitionState, error) { return store.PartitionState{}, store.ErrIntegrity },
			fails: func(err error) bool { return errors.Is(err, store.ErrIntegrity) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w := &waiting{Rebuild: &Rebuild{Namespace: "shop2"}, marks: []ledger.Frontier{5}, look: func(context.Context) ([]store.PartitionState, error) {
					s, err := c.look(time.Since(began))
					return []store.PartitionState{s}, err
				}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := w.until(ctx, store.RebuildRefold, decided); !c.fails(err) {
					t.Errorf("ended with %v", err)
				}
				if took := time.Since(began); took < c.took || took > c.took+2*lookEvery {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}
