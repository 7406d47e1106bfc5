package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"time"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// options are the flags.
type options struct {
	only    *regexp.Regexp
	workers int
	smoke   bool
	docs    bool
	verbose bool
}

func parseFlags(args []string, out io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(out)
	only := flags.String("only", "", "only the mutants whose guard or id matches this `pattern`")
	flags.IntVar(&o.workers, "workers", 2, "copies of the tree that are worked in side by side")
	flags.BoolVar(&o.smoke, "smoke", false, "only the mutants marked for a short run")
	flags.BoolVar(&o.docs, "docs", false, "print the table of guards and stop")
	flags.BoolVar(&o.verbose, "v", false, "print what tests said of killed mutants too")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.only, err = regexp.Compile(*only)
	o.workers = max(o.workers, 1)
	return o, err
}

func run(args []string, out, complain io.Writer) int {
	o, err := parseFlags(args, complain)
	if err != nil {
		fmt.Fprintln(complain, "mutate:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	whole, err := o.run(ctx, out)
	if err != nil {
		fmt.Fprintln(complain, "mutate:", err)
		return 1
	}
	if !whole {
		return 1
	}
	return 0
}

// run does what the flags say; false when something is not as it must be.
func (o options) run(ctx context.Context, out io.Writer) (bool, error) {
	guards, err := parseList(listText)
	if err != nil {
		return false, err
	}
	if o.docs {
		_, err := io.WriteString(out, document(guards))
		return err == nil, err
	}
	selected := o.choose(guards)
	if len(selected) == 0 {
		return false, fmt.Errorf("no mutant is selected")
	}
	root, err := os.Getwd()
	if err != nil {
		return false, err
	}
	began := time.Now()
	canary, err := os.MkdirTemp("", "amends-canary-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(canary)
	wrong, err := runCanaries(ctx, canary, out)
	if err != nil {
		return false, err
	}
	c := &campaign{root: root, workers: o.workers, out: out, verbose: o.verbose}
	results, err := c.run(ctx, selected)
	if err != nil {
		return false, err
	}
	whole := matrix(out, results, time.Since(began))
	for _, w := range wrong {
		fmt.Fprintln(out, "wrong canary:", w)
	}
	return whole && len(wrong) == 0, nil
}

func (o options) choose(guards []guard) []*mutant {
	var selected []*mutant
	for _, g := range guards {
		for _, m := range g.mutants {
			if (!o.smoke || m.smoke) && (o.only.MatchString(m.guard) || o.only.MatchString(m.id)) {
				selected = append(selected, m)
			}
		}
	}
	return selected
}
