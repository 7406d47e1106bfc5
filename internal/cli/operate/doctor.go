package operate

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/broker"
	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/health"
	"amends/internal/inspect"
	"amends/internal/ledger"
	"amends/internal/provision"
	"amends/internal/store/postgres"
	"amends/internal/store/postgres/checkup"
	"amends/internal/usage"
)

// doctorBudget bounds all that doctor asks of one service.
const doctorBudget = 15 * time.Second

// Doctor checks what would break later.
func Doctor(e *target.Env) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Check everything that would break later, with what to do about it",
		Long: `Looks at the manifest, the brokers and both topics, PostgreSQL and its settings, the schema and what this role may do, clocks
and disks. Each line is ok, warning, failure, or unknown where nobody could be asked; what is not ok says why it matters and
what to do. It answers with what there is: without a database, a broker or a manifest the rest is checked all the same.
The code is 1 when something fails, else 0. Nothing is written or created.`,
		Example: `  amends doctor -manifest pipeline.json
  amends doctor -manifest pipeline.json -o json | jq '.checks[] | select(.level == "failure")'`,
		Args: usage.NoArgs,
	}
	e.ManifestFlag(cmd)
	e.BrokersFlag(cmd)
	e.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := e.JSON()
		if err != nil {
			return err
		}
		d := health.Examine(facts(cmd.Context(), e))
		if asJSON {
			err = inspect.WriteJSON(e.Stdout, d)
		} else {
			err = inspect.DoctorText(e.Stdout, d)
		}
		if err == nil && d.Failures > 0 {
			err = &usage.Verdict{Text: fmt.Sprintf("doctor: %d of %d checks failed", d.Failures, len(d.Checks)), Code: 1}
		}
		return err
	}
	return watch.Wrap(e, cmd)
}

// facts asks both services at once; what one does not answer leaves the other's alone.
func facts(ctx context.Context, e *target.Env) *health.Facts {
	parts := e.Parts()
	f := &health.Facts{Manifest: parts.Manifest, ManifestError: parts.ManifestError}
	var wg sync.WaitGroup
	wg.Go(func() { askBroker(ctx, parts, f) })
	wg.Go(func() { askDatabase(ctx, parts, f) })
	wg.Wait()
	if parts.Stack != "" {
		f.Disk, f.DiskError = space(parts.Stack)
	}
	f.Now = time.Now()
	return f
}

func askBroker(ctx context.Context, parts *target.Parts, f *health.Facts) {
	ctx, cancel := context.WithTimeout(ctx, doctorBudget)
	defer cancel()
	if f.BrokerError = parts.BrokerError; f.BrokerError != nil {
		return
	}
	for _, address := range parts.Broker.Brokers {
		dialer := net.Dialer{Timeout: requestTimeout}
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		f.Brokers = append(f.Brokers, health.Dialed{Address: address, Err: err})
	}
	options := parts.Broker
	options.RequestTimeout = requestTimeout
	admin, err := broker.Open(options)
	if err != nil {
		f.BrokerError = err
		return
	}
	defer admin.Close()
	if f.BrokerError = admin.Ping(ctx); f.BrokerError != nil || f.Manifest == nil {
		return
	}
	f.Source = topicFacts(ctx, admin, f.Manifest.SourceTopic)
	if o := f.Manifest.Output; o != nil {
		f.Output = topicFacts(ctx, admin, o.Topic)
	}
	if f.Source.Err == nil && f.Source.Topic.Incarnation == f.Manifest.Config.SourceIncarnation {
		f.Newest = newest(ctx, admin, options, f)
	}
}

func topicFacts(ctx context.Context, admin *broker.Admin, name string) (f health.TopicFacts) {
	if f.Topic, f.Err = admin.Topic(ctx, name); f.Err == nil {
		f.Layout, f.LayoutErr = admin.Layout(ctx, name)
	}
	return f
}

// newest reads the last records of the source topic's first partition that has any, and returns the latest timestamp among them.
func newest(ctx context.Context, admin *broker.Admin, options broker.Options, f *health.Facts) (at time.Time) {
	const last = 16
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m := f.Manifest
	stable, err := admin.Stable(ctx, m.SourceTopic)
	if err != nil {
		return at
	}
	r, err := broker.NewReader(options, m.SourceTopic, m.Config.SourceIncarnation)
	if err != nil {
		return at
	}
	defer r.Close()
	for p, end := range stable {
		if end == 0 {
			continue
		}
		// What cannot be read in time leaves the timestamp unknown, which the check says.
		_, err := r.ReadTo(ctx, ledger.Partition(p), ledger.Frontier(max(0, end-last)), ledger.Frontier(end), func(rec ledger.SourceRecord) error {
			if t := time.UnixMilli(rec.Timestamp); t.After(at) {
				at = t
			}
			return nil
		})
		if err != nil || !at.IsZero() {
			return at
		}
	}
	return at
}

func askDatabase(ctx context.Context, parts *target.Parts, f *health.Facts) {
	if parts.DatabaseError != nil {
		f.ServerError = parts.DatabaseError
		return
	}
	ctx, cancel := context.WithTimeout(ctx, doctorBudget)
	defer cancel()
	if f.Server, f.ServerError = checkup.Look(ctx, parts.Database); f.ServerError != nil {
		return
	}
	// A server without fsync is looked at all the same; that it is refused is a check of its own.
	db, err := postgres.Open(ctx, postgres.Options{URL: parts.Database, Application: "amends doctor", MaxConns: 2, AllowFsyncOff: true})
	if err != nil {
		f.SchemaError = err
		return
	}
	defer db.Close()
	if f.Migrations, f.SchemaError = db.MigrationStatus(ctx); f.SchemaError != nil || f.Manifest == nil {
		return
	}
	if f.Opened = db.CheckSchema(ctx); f.Opened != nil {
		return
	}
	ns, err := db.Namespace(ctx, f.Manifest.Config)
	if f.Opened = err; err != nil {
		return
	}
	f.Binding = provision.CheckBinding(ctx, ns, f.Manifest)
	look := &health.Look{Namespace: ns, Manifest: f.Manifest}
	f.Progress, f.ProgressError = look.Read(ctx)
}

// space asks the file system of a directory.
func space(dir string) (*health.Disk, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return nil, fmt.Errorf("look at disk of %s: %w", dir, err)
	}
	return &health.Disk{Path: dir, Free: s.Bavail * uint64(s.Bsize), Total: s.Blocks * uint64(s.Bsize)}, nil
}
