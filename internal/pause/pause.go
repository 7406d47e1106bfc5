package pause

import (
	"context"
	"errors"
	"time"
)

// For waits for d, no time if d is 0 or less. It returns ctx.Err() when ctx ends before it or has ended by then, else nil.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
	return ctx.Err()
}

// While repeats fn while its errors are those of what passes by itself, with waits between that double from first to most, until ctx
// ends. It returns fn's first other error, nil included. Where ctx ended it returns the last error before that: what was waited for.
func While(ctx context.Context, first, most time.Duration, passes func(error) bool, fn func() error) error {
	var away error
	for wait := first; ; wait = min(2*wait, most) {
		err := fn()
		switch {
		case away != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return away // ctx ended while fn was asked again
		case err == nil || !passes(err):
			return err
		}
		if away = err; For(ctx, wait) != nil {
			return err
		}
	}
}
