package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of one run of go test. The test binary ends itself first.
const (
	testTimeout  = 3 * time.Minute
	buildAllowed = 5 * time.Minute
)

// result is one row of the kill matrix.
type result struct {
	mutant  *mutant
	verdict verdict
	by      string // the test that failed
	words   string // for people, of what is not killed
	took    time.Duration
}

// campaign runs mutants in copies of one module.
type campaign struct {
	root    string
	workers int
	out     io.Writer
	verbose bool

	mu sync.Mutex // guards out
}

// run judges every mutant and returns the rows in the order given. The baseline comes first: a test that is not green without
// a mutant says nothing about one.
func (c *campaign) run(ctx context.Context, mutants []*mutant) ([]result, error) {
	trees := make([]*tree, 0, c.workers)
	defer func() {
		for _, t := range trees {
			t.remove()
		}
	}()
	for range c.workers {
		t, err := copyTree(ctx, c.root)
		if err != nil {
			return nil, err
		}
		trees = append(trees, t)
	}
	red, err := c.baseline(ctx, trees, mutants)
	if err != nil {
		return nil, err
	}
	results := make([]result, len(mutants))
	err = share(ctx, trees, len(mutants), func(t *tree, i int) error {
		m := mutants[i]
		if why, failed := red[m.test]; failed {
			results[i] = result{mutant: m, verdict: redBefore, words: why}
			c.tell(&results[i])
			return nil
		}
		r, err := c.one(ctx, t, m)
		if err != nil {
			return err
		}
		results[i] = r
		c.tell(&results[i])
		return nil
	})
	return results, err
}

// baseline runs the tests of each package once without a mutant and returns what those that are not green said.
func (c *campaign) baseline(ctx context.Context, trees []*tree, mutants []*mutant) (map[target]string, error) {
	var packages []string
	targets := map[string][]target{}
	n := 0
	for _, m := range mutants {
		if !slices.Contains(packages, m.test.pkg) {
			packages = append(packages, m.test.pkg)
		}
		if !slices.Contains(targets[m.test.pkg], m.test) {
			targets[m.test.pkg] = append(targets[m.test.pkg], m.test)
			n++
		}
	}
	red := map[target]string{}
	var mu sync.Mutex // guards red
	began := time.Now()
	err := share(ctx, trees, len(packages), func(t *tree, i int) error {
		of := targets[packages[i]]
		patterns := make([]string, len(of))
		for j, one := range of {
			patterns[j] = one.run
		}
		o, err := t.test(ctx, target{packages[i], strings.Join(patterns, "|")})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, one := range of {
			if why := o.green(one.run); why != "" {
				red[one] = why + "\n" + o.words()
			}
		}
		return nil
	})
	c.say("baseline: %d tests of %d green, %.0f s\n", n-len(red), n, time.Since(began).Seconds())
	return red, err
}

// share gives the numbers below n to the trees, one at a time each.
func share(ctx context.Context, trees []*tree, n int, do func(*tree, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	go func() {
		defer close(next)
		for i := range n {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	var wg sync.WaitGroup
	for _, t := range trees {
		wg.Go(func() {
			for i := range next {
				if err := do(t, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// one makes a mutant, runs its test, and restores the copy.
func (c *campaign) one(ctx context.Context, t *tree, m *mutant) (r result, err error) {
	began := time.Now()
	r = result{mutant: m}
	restore, err := t.mutate(m)
	if err != nil {
		r.verdict, r.words = notApplied, err.Error()
		return r, nil
	}
	defer func() { err = errors.Join(err, restore()) }()
	o, err := t.test(ctx, m.test)
	if err != nil {
		return r, err
	}
	r.verdict, r.by = o.judge(m.says)
	if r.verdict != killed || c.verbose {
		r.words = o.words()
	}
	r.took = time.Since(began)
	return r, nil
}

// test runs go test on a target. A test that fails is an outcome, no error.
func (t *tree) test(ctx context.Context, what target) (*outcome, error) {
	bounded, cancel := context.WithTimeout(ctx, testTimeout+buildAllowed)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(bounded, "go", "test", "-json", "-count=1", "-vet=off", "-trimpath", "-timeout", testTimeout.String(), "-run", what.run, what.pkg)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.root, &out, &out
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, fmt.Errorf("run go test %s: %w", what, err)
	}
	o, err := readOutcome(&out)
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", what, err)
	}
	o.timedOut = o.timedOut || bounded.Err() != nil
	return o, nil
}

func (c *campaign) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.out, format, args...)
}

// tell prints a row, with what was said where it is not a kill.
func (c *campaign) tell(r *result) {
	c.say("%-16s %-36s %5.1f s  %s\n", r.verdict, r.mutant.id, r.took.Seconds(), r.by)
	if r.words != "" {
		c.say("%s\n", tail(r.words))
	}
}

// tail cuts words to their end.
func tail(words string) string {
	const most = 4000
	if len(words) > most {
		return "…" + words[len(words)-most:]
	}
	return words
}
