package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"amends/internal/store"
)

// terminal are the store's errors that another attempt cannot mend, or that are the caller's to handle.
var terminal = [...]error{store.ErrFence, store.ErrServerChanged, store.ErrUnavailable, store.ErrProtocol, store.ErrExhausted, store.ErrIntegrity,
	store.ErrNoSchema, store.ErrSchema, store.ErrNoNamespace, store.ErrConfig, store.ErrBinding, ErrUnresolved}

// Pause waits for d: ctx's error, or another, when the wait ends first.
type Pause func(ctx context.Context, d time.Duration) error

// settle writes once, whatever happens to the replies (S12). After an unknown outcome done reads durable state and says
// whether the write is in it; only if it is not, write is tried again. At most three attempts within one budget, with
// pause between them.
func settle(ctx context.Context, pause Pause, write func(context.Context) error, done func(context.Context) (bool, error)) error {
	op, cancel := context.WithTimeout(ctx, operationBudget)
	defer cancel()
	var last error // definite
	for attempt := 1; ; attempt++ {
		err := write(op)
		if err == nil {
			return nil
		}
		if errors.Is(err, store.ErrCommitUnknown) {
			written, e := observe(op, pause, done)
			if e != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return fmt.Errorf("%w, after: %w", e, store.Resolved(err))
			}
			if written {
				return nil
			}
			err = store.Resolved(err) // it was read: not written
		} else if last != nil && errors.Is(err, store.ErrUnavailable) && op.Err() != nil && ctx.Err() == nil {
			return fmt.Errorf("given up after %s: %w; then: %v", operationBudget, last, err) // no silence: it had answered
		} else if !retriable(ctx, err) {
			return err
		}
		last = err
		if attempt == operationAttempts {
			return fmt.Errorf("given up after %d attempts: %w", attempt, err)
		}
		if e := pause(op, retryWait<<(attempt-1)); e != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("given up after %s: %w", operationBudget, err)
		}
	}
}

// observe reads until it knows: ErrUnresolved when the budget ends first. That the database is away then is the cause in
// words only: who is told ErrUnavailable waits, and this ends the role.
func observe(ctx context.Context, pause Pause, done func(context.Context) (bool, error)) (bool, error) {
	for d := retryWait; ; d = 2 * retryWait {
		written, err := done(ctx)
		if err == nil {
			return written, nil
		}
		if !errors.Is(err, store.ErrUnavailable) && !retriable(ctx, err) && ctx.Err() == nil {
			return false, err
		}
		if pause(ctx, d) != nil {
			return false, fmt.Errorf("%w: %v", ErrUnresolved, err)
		}
	}
}

func retriable(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	for _, t := range terminal {
		if errors.Is(err, t) {
			return false
		}
	}
	return true
}

// drained returns a context that outlives ctx by the drain timeout: what was sent may still be answered.
func drained(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(drainTimeout, cancel) })
	return inner, func() { stop(); cancel() }
}
