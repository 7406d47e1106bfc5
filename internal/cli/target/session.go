package target

import (
	"context"
	"errors"
	"fmt"
	"time"

	"amends/internal/broker"
	"amends/internal/embedded"
	"amends/internal/pause"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/usage"
)

// Access says what opening a namespace may do to the database.
type Access bool

const (
	ReadOnly Access = false // nothing: an empty database is refused (exit 13)
	Create   Access = true  // apply missing migrations and initialise the namespace
)

const (
	Migrating   = 10 * time.Minute // migrations of a populated schema
	retryFirst  = 100 * time.Millisecond
	retryAtMost = 2 * time.Second
)

// Session is an open namespace with its broker.
type Session struct {
	DB        *postgres.DB
	Namespace *postgres.Namespace
	Admin     *broker.Admin
}

// Close ends every connection of the session.
func (s *Session) Close() {
	s.Admin.Close()
	s.DB.Close()
}

// Open opens a target's namespace; ctx bounds the wait for a database that is away.
func (e *Env) Open(ctx context.Context, t *Target, how Access) (*Session, error) {
	admin, err := broker.Open(t.Broker)
	if err != nil {
		return nil, err
	}
	s := &Session{Admin: admin}
	if s.DB, err = e.Connect(ctx, t.Database); err != nil {
		admin.Close()
		return nil, err
	}
	if how == Create {
		if err = schema(ctx, s.DB); err == nil {
			s.Namespace, err = s.DB.Init(ctx, t.Manifest.Config, t.Manifest.SourceTopic)
		}
	} else if err = s.DB.CheckSchema(ctx); err == nil {
		s.Namespace, err = s.DB.Namespace(ctx, t.Manifest.Config)
	}
	if err != nil {
		s.Close()
		if how == ReadOnly {
			err = advised(err)
		}
		return nil, err
	}
	return s, nil
}

// advised says what to do about a schema or a namespace that what only reads can neither make nor mend.
func advised(err error) error {
	switch {
	case errors.Is(err, store.ErrNoSchema), errors.Is(err, store.ErrNoNamespace):
		return fmt.Errorf("%w; output create, source load or a role makes it: is this the right database in %s?", err, DatabaseName)
	case errors.Is(err, store.ErrSchema):
		return fmt.Errorf("%w; migrate status shows both, migrate up applies what is missing", err)
	}
	return err
}

// schema applies missing migrations. A role that may not migrate is fine where none is missing.
func schema(ctx context.Context, db *postgres.DB) error {
	if db.CheckSchema(ctx) == nil {
		return nil
	}
	return db.Migrate(ctx)
}

// Connect opens the database, waiting while it is away until ctx ends.
func (e *Env) Connect(ctx context.Context, url string) (*postgres.DB, error) {
	var db *postgres.DB
	options := postgres.Options{URL: url}
	if e.Getenv(DatabaseName) == "" && e.Getenv(DatabaseName+"_FILE") != "" {
		options.Credentials = func() (string, error) { return usage.Secret(e.Getenv, DatabaseName) }
	}
	err := e.Patiently(ctx, "PostgreSQL", func() (err error) {
		db, err = postgres.Open(ctx, options)
		return err
	})
	if errors.Is(err, store.ErrAddress) {
		err = usage.Errorf("%s: %v", DatabaseName, err)
	}
	return db, err
}

// Patiently repeats fn while its service is away, saying so once, until ctx ends; then it returns why the service was away, also
// where ctx ended while it was asked again.
func (e *Env) Patiently(ctx context.Context, service string, fn func() error) error {
	said := false
	var away error
	for wait := retryFirst; ; wait = min(2*wait, retryAtMost) {
		err := fn()
		if err == nil || !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, broker.ErrUnavailable) {
			if away != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return away
			}
			return err
		}
		away = err
		if ctx.Err() != nil {
			return err
		}
		if !said {
			fmt.Fprintf(e.Stderr, "waiting for %s: %s\n", service, usage.OneLine(err))
			said = true
		}
		if pause.For(ctx, wait) != nil {
			return err
		}
	}
}

// Topics asks the broker about topics once it answers.
type Topics struct {
	*broker.Admin
	env      *Env
	answered bool
}

// Topics returns the topics of a broker whose first question waits while the broker is away, GiveUp at most (S12). That
// question is asked by one goroutine.
func (e *Env) Topics(admin *broker.Admin) *Topics { return &Topics{Admin: admin, env: e} }

// Topic is that of the broker.
func (t *Topics) Topic(ctx context.Context, name string) (broker.Topic, error) {
	if err := t.wait(ctx); err != nil {
		return broker.Topic{}, err
	}
	return t.Admin.Topic(ctx, name)
}

// CreateTopic is that of the broker.
func (t *Topics) CreateTopic(ctx context.Context, name string, partitions int32, replication int16) (broker.Topic, error) {
	if err := t.wait(ctx); err != nil {
		return broker.Topic{}, err
	}
	return t.Admin.CreateTopic(ctx, name, partitions, replication)
}

func (t *Topics) wait(ctx context.Context) error {
	if t.answered {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, GiveUp)
	defer cancel()
	err := t.env.Patiently(ctx, "the broker", func() error { return t.Admin.Ping(ctx) })
	t.answered = err == nil
	return err
}

// DatabaseURL returns the URL of the database that the environment names, else that of the running embedded stack.
func (e *Env) DatabaseURL() (string, error) {
	url, err := usage.Secret(e.Getenv, DatabaseName)
	if err != nil || url != "" {
		return url, err
	}
	running, found, err := embedded.Running(e.Getenv("AMENDS_DIR"))
	if err != nil {
		return "", err
	}
	if !found || running.DatabaseURL == "" {
		return "", MissingDatabase()
	}
	return running.DatabaseURL, nil
}

// Database opens that database, without a namespace.
func (e *Env) Database(ctx context.Context) (*postgres.DB, error) {
	url, err := e.DatabaseURL()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, GiveUp)
	defer cancel()
	return e.Connect(ctx, url)
}
