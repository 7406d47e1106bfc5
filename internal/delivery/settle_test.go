package delivery

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"amends/internal/store"
)

// S12: what an unknown outcome was counts until it is read; after that only what was read does. The exit code is 10 for a
// fence, 11 for a contradiction, 1 for three attempts that did not write, and 12 only where nothing could be read.
func TestS12ResolvedOutcomeIsNotUnknown(t *testing.T) {
	lost := fmt.Errorf("commit: %w", store.ErrCommitUnknown)
	for name, c := range map[string]struct {
		done func() (bool, error)
		want error // nil: none that a caller branches on
	}{
		"fenced":       {func() (bool, error) { return false, fmt.Errorf("term 2: %w", store.ErrFence) }, store.ErrFence},
		"contradicted": {func() (bool, error) { return false, fmt.Errorf("position: %w", store.ErrIntegrity) }, store.ErrIntegrity},
		"not written":  {func() (bool, error) { return false, nil }, nil},
		"not readable": {func() (bool, error) { return false, store.ErrUnavailable }, ErrUnresolved},
	} {
		writes, pauses := 0, 0
		err := settle(t.Context(), func(context.Context, time.Duration) error {
			if pauses++; pauses > 10 {
				return context.DeadlineExceeded
			}
			return nil
		}, func(context.Context) error { writes++; return lost }, func(context.Context) (bool, error) { return c.done() })
		if err == nil || errors.Is(err, store.ErrCommitUnknown) {
			t.Errorf("%s: %v still is an unknown outcome", name, err)
		}
		for _, sentinel := range []error{store.ErrFence, store.ErrIntegrity, ErrUnresolved} {
			if errors.Is(err, sentinel) != (sentinel == c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		if away(err) {
			t.Errorf("%s: %v would be waited for", name, err)
		}
		if name == "not written" && writes != operationAttempts {
			t.Errorf("%s: %d attempts", name, writes)
		}
	}
}
