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

var errPasses, errOther = errors.New("it passes"), errors.New("another")

func TestWhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fn    func(ctx context.Context, asked int) error
		took  time.Duration
		fails error
	}{
		{name: "at once", fn: func(context.Context, int) error { return nil }},
		{name: "another error ends it", fails: errOther, fn: func(context.Context, int) error { return errOther }},
		{name: "waits double up to the most", took: 1 + 2 + 4 + 4, fn: func(_ context.Context, asked int) error {
			if asked <= 4 {
				return errPasses
			}
			return nil
		}},
		{name: "another error ends it later", took: 1, fails: errOther, fn: func(_ context.Context, asked int) error {
			if asked == 1 {
				return errPasses
			}
			return errOther
		}},
		{name: "the end while it waits", took: 20, fails: errPasses, fn: func(context.Context, int) error { return errPasses }},
		{name: "the end while it is asked again", took: 20, fails: errPasses, fn: func(ctx context.Context, asked int) error {
			if asked == 1 {
				return errPasses
			}
			<-ctx.Done()
			return ctx.Err()
		}},
		{name: "the end while it is asked first", took: 20, fails: context.DeadlineExceeded, fn: func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				began, asked := time.Now(), 0
				err := pause.While(ctx, time.Second, 4*time.Second, func(err error) bool { return errors.Is(err, errPasses) }, func() error {
					asked++
					return c.fn(ctx, asked)
				})
				if !errors.Is(err, c.fails) || c.fails == nil && err != nil {
					t.Errorf("got error %v, want %v", err, c.fails)
				}
				if took := time.Since(began); took != c.took*time.Second {
					t.Errorf("took %v, want %v s", took, int64(c.took))
				}
			})
		})
	}
}
