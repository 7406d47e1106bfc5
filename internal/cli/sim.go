package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"amends/internal/sim"
	"amends/internal/sim/campaign"
	"amends/internal/sim/choice"
	"amends/internal/usage"
)

func (a *app) sim() *cobra.Command {
	var o campaign.Options
	var replay, save string
	cmd := &cobra.Command{
		Short: "Run worker, relay, view and verifier through simulated trouble, in memory",
		Long: `Plays schedules of faults (lost replies, crashes, takeovers, failovers, topics created again) against the step machines that
run in production, over a store and a broker in memory, without a clock. Each ends with healing, after which everything must
converge and verification must find what is right. The same seed gives the same schedule. Fails where an invariant does not
hold, and where less was executed than the floors ask for.`,
		Example: `  amends sim -schedules 100000 -floor 1000
  amends sim -replay internal/sim/testdata/idle-after-failover.txt`,
		Args: usage.NoArgs,
	}
	f := cmd.Flags()
	f.IntVar(&o.Schedules, "schedules", 10_000, "`number` of schedules")
	f.Uint64Var(&o.Seed, "seed", 1, "`number` of the first schedule; the next ones follow")
	f.IntVar(&o.Threads, "threads", 0, "`number` of schedules at a time (0: one a processor)")
	f.Int64Var(&o.Floor, "floor", 0, "fail unless each kind of fault happened this `number` of times")
	f.IntVar(&o.Distinct, "distinct", 0, "fail unless this `number` of schedules differ")
	f.Float64Var(&o.Events, "events", 30, "fail unless a schedule has this `number` of events on average")
	f.StringVar(&replay, "replay", "", "play the schedule of this `file` instead, and print its trace")
	f.StringVar(&save, "save", "", "write each schedule that failed, made small, into this `directory`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Schedules < 1 || o.Threads < 0 || o.Floor < 0 || o.Distinct < 0 || o.Events < 0 {
			return usage.Errorf("%s: -schedules is 1 or more, -threads and the floors are 0 or more", cmd.CommandPath())
		}
		if o.Threads == 0 {
			o.Threads = runtime.GOMAXPROCS(0)
		}
		corpus, err := sim.NewCorpus()
		if err != nil {
			return err
		}
		if replay != "" {
			return a.replay(corpus, replay)
		}
		r, err := campaign.Run(cmd.Context(), corpus, o)
		if r != nil {
			err = errors.Join(err, r.Write(a.Stdout), saveFailures(save, r))
		}
		return err
	}
	return cmd
}

// replay plays one recorded schedule and prints what happened in it.
func (a *app) replay(corpus *sim.Corpus, name string) error {
	s, err := choice.ReadFile(name)
	if err != nil {
		return usage.Errorf("-replay: %v", err)
	}
	r, err := corpus.Play(choice.Replay(s.Answers), true)
	if err != nil {
		return err
	}
	for _, line := range r.Trace {
		fmt.Fprintln(a.Stdout, line)
	}
	if r.Violation != nil {
		return fmt.Errorf("schedule %s: %w", name, r.Violation)
	}
	return nil
}

// saveFailures writes the schedules that failed into dir, if there is one.
func saveFailures(dir string, r *campaign.Report) error {
	if dir == "" || len(r.Failures) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save failed schedules: %w", err)
	}
	for i := range r.Failures {
		x := &r.Failures[i]
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("seed-%d.txt", x.Seed)))
		if err != nil {
			return fmt.Errorf("save failed schedules: %w", err)
		}
		s := choice.Scenario{Note: x.Text, Answers: x.Answers}
		if err := errors.Join(s.Write(file), file.Close()); err != nil {
			return fmt.Errorf("save failed schedules: %w", err)
		}
	}
	return nil
}
