package target

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"amends/internal/broker"
	"amends/internal/store"
)

// What is told at the end of the wait is why the service was away, not that a deadline passed while it was asked once more.
func TestPatientlyNamesWhyTheServiceWasAway(t *testing.T) {
	t.Parallel()
	for _, unavailable := range []error{store.ErrUnavailable, broker.ErrUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var words strings.Builder
			asked := 0
			err := (&Env{Stderr: &words}).Patiently(ctx, "the service", func() error {
				if asked++; asked < 3 {
					return fmt.Errorf("refused: %w", unavailable)
				}
				<-ctx.Done()
				return fmt.Errorf("ask: %w", ctx.Err())
			})
			if !errors.Is(err, unavailable) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ended with %v, want why it was away", err)
			}
			if got := words.String(); strings.Count(got, "waiting for the service: refused") != 1 {
				t.Errorf("said %q, want it once", got)
			}
		})
	}
}

// Any other failure ends the wait at once and is returned as it is, also a deadline of fn's own.
func TestPatientlyReturnsOtherFailures(t *testing.T) {
	t.Parallel()
	for _, other := range []error{errors.New("refused credentials"), context.DeadlineExceeded} {
		asked := 0
		err := (&Env{Stderr: &strings.Builder{}}).Patiently(t.Context(), "the service", func() error {
			if asked++; asked == 1 {
				return broker.ErrUnavailable
			}
			return other
		})
		if !errors.Is(err, other) || asked != 2 {
			t.Errorf("ended with %v after %d, want %v after 2", err, asked, other)
		}
	}
}
