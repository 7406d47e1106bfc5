package importing

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"amends/internal/broker"
	"amends/internal/cli/target"
	"amends/internal/intake"
	"amends/internal/progress"
	"amends/internal/provision"
	"amends/internal/usage"
)

// lean keeps garbage below this share of what is in use, in percent: with millions of transactions to tell apart the
// usual 100 would double the memory of the process.
const lean = 40

// Limits of the list of problems.
const (
	problemsShown = 20
	problemsMost  = 100_000
)

// job is one invocation.
type job struct {
	*target.Env
	file     *intake.File
	journal  *intake.Journal
	path     string
	mapping  string
	progress string
	problems int
	execute  bool
	restart  bool
	asJSON   bool
}

// Import returns the command.
func Import(e *target.Env) *cobra.Command {
	j := &job{Env: e}
	cmd := &cobra.Command{
		Short: "Publish a CSV file or an SQL dump, read by a mapping file",
		Long: `Reads a CSV file, or the INSERT statements of an SQL dump, as a mapping file says: which columns are item, location,
transaction, day and quantity, and what is a receipt, an issue, a count or a cancellation. Without -execute nothing is
published and no service is needed: the whole file is read, and the answer shows the first ten records, what the file holds
and every problem by line. With -execute the file is validated in the same way and published only if no line has a problem.
An import that stopped goes on where it stopped when it is run again: FILE.progress says how far it was acknowledged.
The guide docs/guides/import.md has the mapping file's reference.`,
		Example: `  amends import -manifest pipeline.json -mapping stock.yaml -file stock.csv
  amends import -manifest pipeline.json -mapping stock.yaml -file stock.csv -execute
  amends import -manifest pipeline.json -mapping stock.yaml -file stock.csv -problems 1000 -o json`,
		Args: usage.NoArgs,
	}
	e.ManifestFlag(cmd)
	e.BrokersFlag(cmd)
	e.OutputFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&j.path, "file", "", "`file` to import, a regular one")
	f.StringVar(&j.mapping, "mapping", "", "mapping `file` (YAML)")
	f.BoolVar(&j.execute, "execute", false, "publish; without it nothing is")
	f.BoolVar(&j.restart, "restart", false, "publish from the first line on, whatever the progress file says")
	f.StringVar(&j.progress, "progress-file", "", "`file` that remembers how far the import is (default FILE.progress)")
	f.IntVar(&j.problems, "problems", problemsShown, "how many problems are shown, 1 to 100000")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if j.asJSON, err = e.JSON(); err != nil {
			return err
		}
		switch {
		case j.path == "" || j.mapping == "":
			return usage.Errorf("%s needs -file and -mapping", cmd.CommandPath())
		case j.problems < 1 || j.problems > problemsMost:
			return usage.Errorf("-problems %d: 1 to %d", j.problems, problemsMost)
		case !j.execute && (j.restart || j.progress != ""):
			return usage.Errorf("-restart and -progress-file belong to -execute")
		}
		return j.run(cmd.Context())
	}
	return cmd
}

func (j *job) run(ctx context.Context) error {
	m, err := j.Manifest()
	if err != nil {
		return err
	}
	if j.file, err = intake.Open(j.path, j.mapping, m); err != nil {
		return refusal(err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(lean))
	stages := progress.On(j.Stderr, j.Getenv).Stages(map[string]string{"check": "bytes", "publish": "records"})
	load := &provision.Load{Manifest: m, Path: j.path, Emit: func([]provision.Coordinates) error { return nil },
		Options: provision.Options{Rows: j.file.Rows, Problems: j.problems, Progress: stages.Report}}
	var published int64
	if j.execute {
		published, err = j.publish(ctx, load)
	} else {
		_, err = load.Check(ctx)
	}
	stages.Done()
	return j.answer(published, err)
}

// publish runs the load against the target's services.
func (j *job) publish(ctx context.Context, load *provision.Load) (published int64, err error) {
	t, err := j.Target()
	if err != nil {
		return 0, err
	}
	opening, cancel := context.WithTimeout(ctx, target.GiveUp)
	defer cancel()
	s, err := j.Open(opening, t, target.Create)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if err := provision.CheckBinding(opening, s.Namespace, t.Manifest); err != nil {
		return 0, err
	}
	m := t.Manifest
	load.Topics = j.Topics(s.Admin)
	load.Guard = func(ctx context.Context) (provision.Guard, error) {
		g, err := s.DB.GuardSource(ctx, m.Config.SourceIncarnation)
		if err != nil {
			return nil, err
		}
		return g, nil
	}
	load.Publish = func() (provision.Publisher, error) {
		return broker.NewProducer(t.Broker, m.SourceTopic, m.Config.SourceIncarnation)
	}
	if j.progress == "" {
		j.progress = j.path + ".progress"
	}
	journal := intake.OpenJournal(j.progress)
	load.Validated = func(int64) (int64, error) {
		after, err := journal.Begin(j.file, j.restart)
		if err == nil {
			j.journal = journal
		}
		return after, err
	}
	load.Acknowledged = journal.Acknowledged
	published, err = load.Run(ctx)
	if j.journal != nil {
		err = errors.Join(err, journal.End(err == nil))
	}
	return published, err
}

// answer writes the report of what was found and done, where the file could be read at all, and returns the error that
// the command ends with.
func (j *job) answer(published int64, err error) error {
	if j.file.Survey() == nil || j.file.Survey().Digest == "" {
		return refusal(err)
	}
	r := newReport(j, published, err)
	write := r.text
	if j.asJSON {
		write = r.json
	}
	if failed := write(j.Stdout); failed != nil {
		return errors.Join(err, fmt.Errorf("write report: %w", failed))
	}
	if errors.Is(err, intake.ErrComplete) {
		return nil
	}
	return refusal(err)
}

// refusal makes a wrong invocation of what the file or its mapping are to blame for.
func refusal(err error) error {
	var refused *intake.Refused
	if errors.As(err, &refused) {
		return usage.Errorf("%s", refused.Reason)
	}
	return err
}
