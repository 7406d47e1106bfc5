package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/broker"
	"amends/internal/cli/operate"
	"amends/internal/cli/proof"
	"amends/internal/cli/target"
	"amends/internal/lease"
	"amends/internal/provision"
	"amends/internal/roles"
	"amends/internal/store"
	"amends/internal/usage"
)

// roleFlags are those of run and of the bare form.
type roleFlags struct {
	roles     []string
	protocol  string
	listen    string
	workers   int
	maxWait   time.Duration
	noStandby bool
}

func (a *app) roleFlags(cmd *cobra.Command, r *roleFlags, otherwise []string) {
	a.ManifestFlag(cmd)
	a.BrokersFlag(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&r.roles, "role", otherwise, "`roles` to run: source, relay, view, audit, web, with commas")
	f.IntVar(&r.workers, "workers", 1, "`members` of the source group in this process, 1 or more")
	f.StringVar(&r.protocol, "group-protocol", string(broker.Eager), "`protocol` of the source group, the same for all members: eager, cooperative, or consumer (Kafka 4.0 or newer)")
	operate.ListenFlag(cmd, &r.listen)
	f.BoolVar(&r.noStandby, "no-standby", false, "end with code 10 instead of waiting while another process relays or views")
	f.DurationVar(&r.maxWait, "max-wait", 0, "give up the start after this `time` when a service is away (0: wait without limit)")
}

func (a *app) run() *cobra.Command {
	var r roleFlags
	cmd := &cobra.Command{
		Short: "Run roles: source, relay and view, or some of them",
		Long: `Runs roles until SIGTERM, which drains them. Any number of processes may run each role: source partitions are shared out,
a second relay or view waits as a standby. A role that ends ends the process with its code; the audit, which keeps
verifying as amends audit does, only says what it finds. One audit is enough. web answers /livez, /readyz, /metrics and
/version for the process that it runs in, and may run alone.`,
		Example: `  amends run -manifest pipeline.json
  amends run -manifest pipeline.json -role relay,view
  amends run -manifest pipeline.json -role source -workers 4
  amends run -manifest pipeline.json -role source,relay,view,audit,web -listen 127.0.0.1:9464`,
		Args: usage.NoArgs,
	}
	a.roleFlags(cmd, &r, []string{"source", "relay", "view"})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.runRoles(cmd, &r) }
	return cmd
}

// bare is the program without a command: with flags it runs roles, the source unless told, without any it helps.
func (a *app) bare() *cobra.Command {
	var r roleFlags
	cmd := &cobra.Command{
		Short: "amends repairs what was published from a ledger that turned out wrong",
		Long: `amends keeps published balances and alerts right: a late, amended or cancelled record changes what follows from it, each
change is published with a version and its cause, and an independent recomputation proves the result.`,
		Example: `  amends demo
  amends source create -namespace shop -topic shop-source > source.json
  amends output create -manifest source.json -topic shop-output > pipeline.json
  amends run -manifest pipeline.json
  amends source load -manifest pipeline.json -file fixtures/before.jsonl
  amends verify -manifest pipeline.json`,
	}
	a.roleFlags(cmd, &r, []string{"source"})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if a.typed == 0 {
			return cmd.Help()
		}
		return a.runRoles(cmd, &r)
	}
	return cmd
}

// selected checks the names of roles.
func (r *roleFlags) selected(cmd *cobra.Command) ([]roles.Role, error) {
	if r.workers < 1 || r.maxWait < 0 || len(r.roles) == 0 {
		return nil, usage.Errorf("-role names roles, -workers is 1 or more, -max-wait 0 or more; try: %s -help", cmd.CommandPath())
	}
	if !slices.Contains(broker.GroupProtocols(), broker.GroupProtocol(r.protocol)) {
		return nil, usage.Errorf("unknown group protocol %q; the protocols are eager, cooperative and consumer", r.protocol)
	}
	selected, err := roles.Parse(r.roles)
	if err != nil {
		return nil, usage.Errorf("%v", err)
	}
	return selected, nil
}

func (a *app) runRoles(cmd *cobra.Command, r *roleFlags) error {
	selected, err := r.selected(cmd)
	if err != nil {
		return err
	}
	t, err := a.Target()
	if err != nil {
		return err
	}
	if t.Manifest.Output == nil && slices.ContainsFunc(selected, func(r roles.Role) bool { return r != roles.Source && r != roles.Web }) {
		return provision.ErrUnbound
	}
	log := slog.New(slog.NewTextHandler(a.Stderr, nil))
	site, err := a.site(cmd.Context(), t, r, selected, log)
	if err != nil {
		return err
	}
	defer site.Close()
	s, err := a.start(cmd.Context(), t, r.maxWait)
	if stopped(cmd.Context()) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	log.Info("roles start", "namespace", t.Manifest.Config.Namespace, "roles", fmt.Sprint(selected), "brokers", strings.Join(t.Broker.Brokers, ","), "pid", os.Getpid())
	err = roles.Run(cmd.Context(), roles.Options{Manifest: t.Manifest, Namespace: s.Namespace, Topics: s.Admin, Broker: t.Broker, Server: s.DB.Server,
		Holder: lease.Holder(), Logger: log, Roles: selected, Workers: r.workers, NoStandby: r.noStandby, GroupProtocol: broker.GroupProtocol(r.protocol),
		Audit: proof.Role(t, s, log), Web: site.Role(t, s)})
	switch {
	case err == nil:
		log.Info("roles stopped", "namespace", t.Manifest.Config.Namespace)
	case r.noStandby && errors.Is(err, store.ErrServiceBusy):
		err = fmt.Errorf("%w: %w", errNoStandby, err)
	}
	return err
}

// site opens the web role where it is one of those selected. It answers before the services are there, so that whoever starts the
// process sees that it lives and what it waits for.
func (a *app) site(ctx context.Context, t *target.Target, r *roleFlags, selected []roles.Role, log *slog.Logger) (*operate.Site, error) {
	if !slices.Contains(selected, roles.Web) {
		return nil, nil
	}
	b := build()
	return operate.OpenSite(ctx, a.Env, t, operate.SiteOptions{Log: log, Answer: b, Listen: r.listen, Version: b.Version, Revision: b.Revision, Go: b.Go})
}

// start establishes everything that must hold before a role reads anything: both topics' identity, the configuration and
// the binding. Services that are away are waited for, without limit when maxWait is 0.
func (a *app) start(ctx context.Context, t *target.Target, maxWait time.Duration) (*target.Session, error) {
	if maxWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, maxWait)
		defer cancel()
	}
	var s *target.Session
	err := a.Patiently(ctx, "PostgreSQL", func() (err error) {
		s, err = a.Open(ctx, t, target.Create)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = a.Patiently(ctx, "the broker", func() error { return provision.CheckTopics(ctx, s.Admin, t.Manifest) })
	if err == nil {
		err = a.Patiently(ctx, "PostgreSQL", func() error { return provision.CheckBinding(ctx, s.Namespace, t.Manifest) })
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// stopped reports whether a signal ended ctx: a clean stop.
func stopped(ctx context.Context) bool { return context.Cause(ctx) == errStopped }
