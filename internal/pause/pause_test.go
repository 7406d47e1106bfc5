package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"amends/internal/pause"
)

func TestFor(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		name  string
		ctx   func(context.Context) (context.Context, context.CancelFunc)
		d     time.Duration
		took  time.Duration
		fails error
	}{
		{name: "to its end", d: time.Minute, took: time.Minute},
		{name: "no time", d: 0},
		{name: "less than none", d: -time.Second},
		{name: "until the context ends", d: time.Minute, took: time.Second, fails: context.DeadlineExceeded,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			}},
		{name: "the context has ended", d: 0, fails: context.Canceled,
			ctx: func(context.Context) (context.Context, context.CancelFunc) { return ended, end }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.ctx != nil {
					ctx, cancel = c.ctx(ctx)
				}
				defer cancel()
				began := time.Now()
				if err := pause.For(ctx, c.d); !errors.Is(err, c.fails) {
					t.Errorf("got error %v, want %v", err, c.fails)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}
