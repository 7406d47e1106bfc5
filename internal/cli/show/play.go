package show

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"amends/internal/broker"
	"amends/internal/cli/target"
	"amends/internal/embedded"
	"amends/internal/manifest"
	"amends/internal/showcase/account"
	"amends/internal/showcase/crash"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/usage"
	"amends/internal/verify"
)

// play is one run of a command.
type play struct {
	*target.Env
	parts    Parts
	words    crash.Hooks
	scenario crash.Scenario
	options  options
}

// services are what a run works on; stack is nil for named ones.
type services struct {
	stack    *embedded.Stack
	database string
	brokers  broker.Options
}

// run makes the names, opens the services and runs. The report is nil where nothing was made.
func (p *play) run(ctx context.Context, on services) (*account.Account, error) {
	p.options.names(p.scenario)
	if !manifest.ValidNamespace(p.options.namespace) {
		return nil, usage.Errorf("-namespace %q: [a-z0-9][a-z0-9._-]{0,63}", p.options.namespace)
	}
	work, err := filepath.Abs(p.options.work)
	if err != nil {
		return nil, fmt.Errorf("find directory: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	env, err := p.environment(on.brokers)
	if err != nil {
		return nil, err
	}
	db, err := p.database(ctx, on.database)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	admin, err := broker.Open(on.brokers)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	asking, cancel := context.WithTimeout(ctx, target.GiveUp)
	defer cancel()
	if err := p.Patiently(asking, "the broker", func() error { return admin.Ping(asking) }); err != nil {
		return nil, err
	}
	at := account.Services{Brokers: on.brokers.Brokers, Embedded: on.stack != nil, Database: place(on.database)}
	o := crash.Options{DB: db, Admin: admin, Broker: on.brokers, Database: on.database, Services: at, Scenario: p.scenario, Namespace: p.options.namespace,
		Directory: work, Program: program, Env: env, Access: target.KafkaFlags(on.brokers.Security), Records: p.options.records, Copies: p.options.copies, Hooks: p.words,
		Verify: func(ctx context.Context, m *manifest.Manifest, n *postgres.Namespace) (*verify.Report, error) {
			return p.parts.Verify(ctx, &target.Target{Manifest: m, Broker: on.brokers, Database: on.database}, &target.Session{DB: db, Namespace: n, Admin: admin})
		},
		Commands: func(path string) []string { return p.commands(path, on) }}
	a, err := crash.Run(ctx, o)
	var taken *crash.TakenError
	if errors.As(err, &taken) {
		err = usage.Errorf("%v", taken)
	}
	return a, err
}

// database opens the database and makes its schema where there is none; another version's schema is refused and left alone.
func (p *play) database(ctx context.Context, address string) (*postgres.DB, error) {
	opening, cancel := context.WithTimeout(ctx, target.GiveUp)
	defer cancel()
	db, err := p.Connect(opening, address)
	if err != nil {
		return nil, err
	}
	if err = db.CheckSchema(opening); errors.Is(err, store.ErrNoSchema) {
		err = db.Migrate(opening)
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// environment is that of the child processes: this one's, with the one secret of brokers that they need.
func (p *play) environment(brokers broker.Options) ([]string, error) {
	secrets, err := p.KafkaSecrets(brokers.Security)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !target.IsKafkaSecret(name) {
			out = append(out, v)
		}
	}
	return append(out, secrets...), nil
}

// place is where a database is, without credentials.
func place(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "the database of " + target.DatabaseName
	}
	return u.Host + u.Path
}

// commands are those that look further at what a run leaves.
func (p *play) commands(path string, on services) []string {
	named := " -manifest " + target.Quote(path)
	var out []string
	if on.stack != nil {
		dev := p.command("dev") + " -dir " + target.Quote(on.stack.Dir())
		if !on.stack.Attached() {
			out = append(out, dev+"    # the stack again; leave it running and go on beside it")
		}
		out = append(out, `eval "$(`+dev+`)"    # names the running stack's services`)
	} else {
		named += " -brokers " + target.Quote(strings.Join(on.brokers.Brokers, ","))
		for _, flag := range target.KafkaFlags(on.brokers.Security) {
			if !strings.HasSuffix(flag, "=") && !strings.HasSuffix(flag, "=false") {
				named += " " + target.Quote(flag)
			}
		}
	}
	for _, name := range p.parts.Look {
		out = append(out, p.command(name)+named)
	}
	return out
}

// command writes a command as it can be pasted.
func (p *play) command(text string) string {
	return target.Quote(p.Program) + " " + p.parts.Named(text)
}
