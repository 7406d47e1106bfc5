package pause

import (
	"context"
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
