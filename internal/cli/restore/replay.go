package restore

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/ledger"
	"amends/internal/phrase"
	"amends/internal/progress"
	"amends/internal/provision"
	"amends/internal/recovery"
	"amends/internal/usage"
)

// exitIntegrity is the code of a recorded history that is not the source's (design section 8).
const exitIntegrity = 11

// Replay returns the command replay.
func Replay(e *target.Env) *cobra.Command {
	var execute bool
	cmd := &cobra.Command{
		Short: "Read the source again and check that every record is recorded as it is; commit a higher epoch",
		Long: `Reads the source records below each partition's frontier and compares each with what is recorded of it: it must be there with
the same digest of raw key and value. What is missing, extra or different is named by its coordinates, and the code is 11.
Without -execute nothing is changed. With it, and without any difference, every partition gets a higher epoch, and nothing
else changes: no output, no version, no measurement. A running worker is fenced by that: it ends with code 10 within seconds
and claims again when it is started again.`,
		Example: `  amends replay -manifest pipeline.json
  amends replay -manifest pipeline.json -execute -o json`,
		Args: usage.NoArgs,
	}
	e.ManifestFlag(cmd)
	e.BrokersFlag(cmd)
	e.OutputFlag(cmd)
	cmd.Flags().BoolVar(&execute, "execute", false, "commit a higher epoch of every partition")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := e.JSON()
		if err != nil {
			return err
		}
		t, s, err := open(cmd.Context(), e)
		if err != nil {
			return err
		}
		defer s.Close()
		stages := progress.On(e.Stderr, e.Getenv).Stages(recovery.Units())
		defer stages.Done()
		r := &recovery.Replay{Manifest: t.Manifest, Namespace: s.Namespace, Topics: s.Admin, Broker: t.Broker, Progress: stages.Report}
		a, err := replay(cmd.Context(), e, r, execute)
		stages.Done()
		if a != nil {
			err = a.write(e.Stdout, asJSON, err)
		}
		return err
	}
	return cmd
}

// open opens the namespace that a command reads and checks its binding and its source. Its output topic may be what was lost.
func open(ctx context.Context, e *target.Env) (*target.Target, *target.Session, error) {
	t, err := e.Target()
	if err != nil {
		return nil, nil, err
	}
	opening, cancel := context.WithTimeout(ctx, target.GiveUp)
	defer cancel()
	s, err := e.Open(opening, t, target.ReadOnly)
	if err != nil {
		return nil, nil, err
	}
	if err = provision.CheckBinding(opening, s.Namespace, t.Manifest); err == nil {
		err = e.Patiently(opening, "the broker", func() error {
			_, err := provision.CheckSource(opening, s.Admin, t.Manifest)
			return err
		})
	}
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return t, s, nil
}

// replayed is the answer of a replay.
type replayed struct {
	namespace string
	plan      *recovery.Plan
	found     *recovery.Replayed
	executed  bool
}

// replay plans, scans and, where nothing differs, installs. The answer is nil where there is none.
func replay(ctx context.Context, e *target.Env, r *recovery.Replay, execute bool) (*replayed, error) {
	plan, err := r.Plan(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(e.Stderr, "replay of %s: %s below the frontiers of %s, %s decided from them; about %s\n", r.Manifest.Config.Namespace,
		phrase.Counted(plan.Records, "source offset"), phrase.Counted(int64(r.Manifest.Config.Partitions), "partition"), phrase.Counted(plan.Outputs, "message"), about(plan.Estimate))
	if execute {
		fmt.Fprintln(e.Stderr, "a running worker is fenced by the higher epoch: it ends with code 10 and claims again when it is started again")
	}
	a := &replayed{namespace: r.Manifest.Config.Namespace, plan: plan, executed: execute}
	if a.found, err = r.Scan(ctx); err != nil {
		return nil, err
	}
	if a.found.Differing > 0 {
		a.executed = false
		return a, &usage.Verdict{Code: exitIntegrity, Text: "replay " + a.headline()}
	}
	if execute {
		if err := r.Install(ctx, a.found); err != nil {
			return nil, fmt.Errorf("every record is recorded as it is; higher epochs were installed for %d of %s: %w", a.installed(),
				phrase.Counted(len(a.found.Positions), "partition"), err)
		}
	}
	return a, nil
}

// installed counts the partitions that have their higher epoch.
func (a *replayed) installed() (n int) {
	for _, p := range a.found.Positions {
		if p.Installed > 0 {
			n++
		}
	}
	return n
}

// write writes the answer, keeping what the command ends with.
func (a *replayed) write(out io.Writer, asJSON bool, ending error) error {
	var err error
	if asJSON {
		err = writeJSON(out, a.json())
	} else {
		_, err = io.WriteString(out, a.text())
	}
	if err != nil {
		return err
	}
	return ending
}

func (a *replayed) headline() string {
	f := a.found
	switch {
	case f.Differing > 0:
		first := f.Faults[0]
		return fmt.Sprintf("DIFFERS  %s not recorded as the source holds them; the first: %s partition %d offset %d; nothing was changed",
			phrase.Counted(f.Differing, "record"), first.Fault, first.Partition, first.Offset)
	case !a.executed:
		return fmt.Sprintf("SAME  %s recorded with the same digest; nothing was changed, -execute commits a higher epoch", phrase.Counted(f.Records, "record"))
	}
	return fmt.Sprintf("REPLAYED  %s recorded with the same digest; a higher epoch is installed, and nothing else changed", phrase.Counted(f.Records, "record"))
}

func (a *replayed) text() string {
	var b strings.Builder
	fmt.Fprintln(&b, a.headline())
	for _, p := range a.found.Positions {
		fmt.Fprintf(&b, "partition %d: %s below frontier %d, epoch %d", p.Partition, phrase.Counted(p.Records, "record"), p.Frontier, p.Epoch)
		if p.Installed > 0 {
			fmt.Fprintf(&b, " -> %d", p.Installed)
		}
		b.WriteByte('\n')
	}
	for _, f := range a.found.Faults {
		fmt.Fprintf(&b, "%s partition %d offset %d: %s\n", f.Fault, f.Partition, f.Offset, meaning(f.Fault))
	}
	if more := a.found.Differing - int64(len(a.found.Faults)); more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	return b.String()
}

func meaning(f recovery.Fault) string {
	switch f {
	case recovery.Missing:
		return "the source holds a record that is not recorded"
	case recovery.Extra:
		return "a record is recorded that the source does not hold below the frontier"
	}
	return "the record's digest is another than the recorded one"
}

// about writes an estimate, which has no use for digits.
func about(d time.Duration) string {
	switch {
	case d < time.Second:
		return "a second"
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}

type (
	jsonReplay struct {
		Schema        int                  `json:"schema"`
		Namespace     string               `json:"namespace"`
		Result        string               `json:"result"`
		Executed      bool                 `json:"executed"`
		Plan          jsonPlan             `json:"plan"`
		SourceRecords int64                `json:"source_records"`
		Differences   jsonFaults           `json:"differences"`
		Partitions    []jsonReplayPosition `json:"partitions"`
		Elapsed       float64              `json:"elapsed_seconds"`
	}
	jsonPlan struct {
		SourceOffsets int64   `json:"source_offsets"`
		Messages      int64   `json:"messages"`
		Estimate      float64 `json:"estimate_seconds"`
	}
	jsonFaults struct {
		Count int64       `json:"count"`
		First []jsonFault `json:"first"`
	}
	jsonFault struct {
		What      recovery.Fault   `json:"what"`
		Partition ledger.Partition `json:"partition"`
		Offset    ledger.Offset    `json:"offset"`
	}
	jsonReplayPosition struct {
		Partition     ledger.Partition `json:"partition"`
		Frontier      ledger.Frontier  `json:"frontier"`
		NextSequence  ledger.Sequence  `json:"next_sequence"`
		SourceRecords int64            `json:"source_records"`
		Epoch         ledger.Epoch     `json:"epoch"`
		Installed     *ledger.Epoch    `json:"installed_epoch"`
	}
)

func planJSON(p *recovery.Plan) jsonPlan {
	return jsonPlan{SourceOffsets: p.Records, Messages: p.Outputs, Estimate: p.Estimate.Seconds()}
}

func (a *replayed) json() *jsonReplay {
	result, _, _ := strings.Cut(a.headline(), " ")
	j := &jsonReplay{Schema: 1, Namespace: a.namespace, Result: result, Executed: a.executed, Plan: planJSON(a.plan), SourceRecords: a.found.Records,
		Differences: jsonFaults{Count: a.found.Differing, First: []jsonFault{}}, Partitions: []jsonReplayPosition{}, Elapsed: a.found.Elapsed.Seconds()}
	for _, f := range a.found.Faults {
		j.Differences.First = append(j.Differences.First, jsonFault{f.Fault, f.Partition, f.Offset})
	}
	for _, p := range a.found.Positions {
		at := jsonReplayPosition{Partition: p.Partition, Frontier: p.Frontier, NextSequence: p.Sequence, SourceRecords: p.Records, Epoch: p.Epoch}
		if p.Installed > 0 {
			at.Installed = &p.Installed
		}
		j.Partitions = append(j.Partitions, at)
	}
	return j
}
