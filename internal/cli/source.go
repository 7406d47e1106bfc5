package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"amends/internal/broker"
	"amends/internal/cli/target"
	"amends/internal/inspect"
	"amends/internal/manifest"
	"amends/internal/phrase"
	"amends/internal/progress"
	"amends/internal/provision"
	"amends/internal/usage"
	"amends/internal/wire"
)

func (a *app) sourceCreate() *cobra.Command {
	var s provision.Source
	cmd := &cobra.Command{
		Short: "Create a source topic and print its manifest",
		Long: `Creates a topic that keeps its records for ever and prints the manifest of a new namespace on it. No database is
needed. Without -config the namespace has the worked example's key (widget, berlin) on partition 0 of 2 and no open keys. A
configuration file is the config object of a manifest without source_incarnation. An existing topic is refused.`,
		Example: `  amends source create -namespace shop -topic shop-source > source.json
  amends source create -brokers kafka-1:9092 -namespace shop -topic shop-source -config shop.json -replication-factor 3 > source.json`,
		Args: usage.NoArgs,
	}
	a.BrokersFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&s.Namespace, "namespace", "", "`name` of the namespace: [a-z0-9][a-z0-9._-]{0,63}")
	f.StringVar(&s.Topic, "topic", "", "`name` of the topic to create")
	f.StringVar(&s.ConfigFile, "config", "", "configuration `file`; without it the worked example's key")
	f.Int16Var(&s.Replication, "replication-factor", 1, "`copies` of each partition, 1 or more")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if s.Namespace == "" || s.Topic == "" || s.Replication < 1 {
			return usage.Errorf("%s needs -namespace and -topic, and -replication-factor of 1 or more", cmd.CommandPath())
		}
		options, err := a.BrokerOptions(nil)
		if err != nil {
			return err
		}
		admin, err := broker.Open(options)
		if err != nil {
			return err
		}
		defer admin.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), target.GiveUp)
		defer cancel()
		m, err := provision.CreateSource(ctx, a.Topics(admin), s)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Stderr, "created topic %s (%s), %s\n", m.SourceTopic, m.Config.SourceIncarnation, phrase.Counted(int(m.Config.Partitions), "partition"))
		return a.printManifest(m)
	}
	return cmd
}

func (a *app) printManifest(m *manifest.Manifest) error {
	_, err := a.Stdout.Write(m.Append(nil))
	return err
}

func (a *app) outputCreate() *cobra.Command {
	var o provision.Output
	cmd := &cobra.Command{
		Short: "Create the output topic, bind it and print the bound manifest",
		Long: `Creates a topic with as many partitions as the source, binds the namespace to it once and for all, and prints the
bound manifest. Running it again prints the same manifest, so a lost reply or a lost file is recovered. A topic that exists
without being this namespace's output is never adopted.`,
		Example: `  amends output create -manifest source.json -topic shop-output > pipeline.json`,
		Args:    usage.NoArgs,
	}
	a.ManifestFlag(cmd)
	a.BrokersFlag(cmd)
	cmd.Flags().StringVar(&o.Topic, "topic", "", "`name` of the topic to create")
	cmd.Flags().Int16Var(&o.Replication, "replication-factor", 1, "`copies` of each partition, 1 or more")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Topic == "" || o.Replication < 1 {
			return usage.Errorf("%s needs -topic, and -replication-factor of 1 or more", cmd.CommandPath())
		}
		t, err := a.Target()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), target.GiveUp)
		defer cancel()
		s, err := a.Open(ctx, t, target.Create)
		if err != nil {
			return err
		}
		defer s.Close()
		m, err := provision.CreateOutput(ctx, a.Topics(s.Admin), s.Namespace, t.Manifest, o)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Stderr, "namespace %s is bound to topic %s (%s), %s\n", m.Config.Namespace, m.Output.Topic, m.Output.Incarnation, phrase.Counted(int(m.Output.Partitions), "partition"))
		return a.printManifest(m)
	}
	return cmd
}

func (a *app) sourceLoad() *cobra.Command {
	var file, format string
	cmd := &cobra.Command{
		Short: "Validate a file of records, then publish it in order",
		Long: `Reads the file twice: the first pass validates every line and refuses the whole file for any bad one, naming line and
column; the second publishes in order and prints "partition offset txn_id revision" for each record. jsonl: each line one
assertion; key and partition follow from the manifest. raw: each line {"partition":0,"key":"<base64>","value":"<base64>"},
published exactly so, unvalidated, null for an absent key or value. One load of a source runs at a time. After a load that
stopped, running it again is safe: what is there already becomes DUPLICATE evidence.`,
		Example: `  amends source load -manifest pipeline.json -file fixtures/before.jsonl
  amends source load -manifest pipeline.json -file poison.jsonl -format raw`,
		Args: usage.NoArgs,
	}
	a.ManifestFlag(cmd)
	a.BrokersFlag(cmd)
	a.OutputFlag(cmd)
	cmd.Flags().StringVar(&file, "file", "", "`file` to load, a regular one")
	cmd.Flags().StringVar(&format, "format", string(provision.JSONL), "`format` of the file: jsonl or raw")
	target.Complete(cmd, "format", provision.JSONL, provision.Raw)
	usage.Own(cmd, "format", "source-load-format") // that of inspect is another
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.JSON()
		if err != nil {
			return err
		}
		if file == "" || !provision.Format(format).Valid() {
			return usage.Errorf("%s needs -file, and -format jsonl or raw", cmd.CommandPath())
		}
		t, err := a.Target()
		if err != nil {
			return err
		}
		return a.load(cmd.Context(), t, file, provision.Format(format), asJSON)
	}
	return cmd
}

func (a *app) load(ctx context.Context, t *target.Target, file string, format provision.Format, asJSON bool) error {
	opening, cancel := context.WithTimeout(ctx, target.GiveUp)
	defer cancel()
	s, err := a.Open(opening, t, target.Create)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := provision.CheckBinding(opening, s.Namespace, t.Manifest); err != nil {
		return err
	}
	stages := progress.On(a.Stderr, a.Getenv).Stages(map[string]string{"check": "bytes", "publish": "records"})
	l := a.loader(t, s, file, format, func(c []provision.Coordinates) error {
		stages.Hide() // both may be the same terminal
		return emit(a.Stdout, c, asJSON)
	})
	l.Progress = stages.Report
	n, err := l.Run(ctx)
	stages.Done()
	for _, p := range problems(err) {
		fmt.Fprintln(a.Stderr, p)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "published %s to %s\n", phrase.Counted(n, "record"), t.Manifest.SourceTopic)
	return nil
}

// loader prepares a load over an open session.
func (a *app) loader(t *target.Target, s *target.Session, file string, format provision.Format, emit func([]provision.Coordinates) error) *provision.Load {
	m := t.Manifest
	return &provision.Load{Manifest: m, Topics: a.Topics(s.Admin), Path: file, Format: format, Emit: emit,
		Guard: func(ctx context.Context) (provision.Guard, error) {
			g, err := s.DB.GuardSource(ctx, m.Config.SourceIncarnation)
			if err != nil {
				return nil, err
			}
			return g, nil
		},
		Publish: func() (provision.Publisher, error) {
			return broker.NewProducer(t.Broker, m.SourceTopic, m.Config.SourceIncarnation)
		}}
}

// problems returns the bad lines that a refusal names.
func problems(err error) []provision.Problem {
	var refused *provision.RefusedFile
	if errors.As(err, &refused) {
		return refused.Problems
	}
	return nil
}

// emit writes coordinates, one record a line. In text a hostile txn_id is quoted, and a raw record without one has "-".
func emit(out io.Writer, records []provision.Coordinates, asJSON bool) error {
	w := bufio.NewWriter(out)
	var b []byte
	for _, c := range records {
		b = b[:0]
		if asJSON {
			b = strconv.AppendInt(append(b, `{"partition":`...), int64(c.Partition), 10)
			b = strconv.AppendInt(append(b, `,"offset":`...), int64(c.Offset), 10)
			b = wire.AppendString(append(b, `,"txn_id":`...), c.TxnID)
			b = strconv.AppendInt(append(b, `,"revision":`...), int64(c.Revision), 10)
			b = append(b, '}')
		} else {
			b = fmt.Appendf(b, "%d %d %s %s", c.Partition, c.Offset, named(c.TxnID), numbered(int64(c.Revision)))
		}
		if _, err := w.Write(append(b, '\n')); err != nil {
			return err
		}
	}
	return w.Flush()
}

func named(txnID string) string {
	if txnID == "" {
		return "-"
	}
	return inspect.Name(txnID)
}

func numbered(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}
