package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"amends/internal/broker"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/usage"
)

// access says what opening a namespace may do to the database.
type access bool

const (
	readOnly access = false // nothing: an empty database is refused (exit 13)
	create   access = true  // apply missing migrations and initialise the namespace
)

const (
	migrating   = 10 * time.Minute // migrations of a populated schema
	retryFirst  = 100 * time.Millisecond
	retryAtMost = 2 * time.Second
)

// session is an open namespace with its broker.
type session struct {
	db        *postgres.DB
	namespace *postgres.Namespace
	admin     *broker.Admin
}

func (s *session) close() {
	s.admin.Close()
	s.db.Close()
}

// open opens a target's namespace; ctx bounds the wait for a database that is away.
func (a *app) open(ctx context.Context, t *target, how access) (*session, error) {
	admin, err := broker.Open(t.broker)
	if err != nil {
		return nil, err
	}
	s := &session{admin: admin}
	if s.db, err = a.connect(ctx, t.database); err != nil {
		admin.Close()
		return nil, err
	}
	if how == create {
		if err = schema(ctx, s.db); err == nil {
			s.namespace, err = s.db.Init(ctx, t.manifest.Config, t.manifest.SourceTopic)
		}
	} else if err = s.db.CheckSchema(ctx); err == nil {
		s.namespace, err = s.db.Namespace(ctx, t.manifest.Config)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// schema applies missing migrations. A role that may not migrate is fine where none is missing.
func schema(ctx context.Context, db *postgres.DB) error {
	if db.CheckSchema(ctx) == nil {
		return nil
	}
	return db.Migrate(ctx)
}

// connect opens the database, waiting while it is away until ctx ends.
func (a *app) connect(ctx context.Context, url string) (*postgres.DB, error) {
	var db *postgres.DB
	err := a.patiently(ctx, "PostgreSQL", func() (err error) {
		db, err = postgres.Open(ctx, postgres.Options{URL: url})
		return err
	})
	if errors.Is(err, store.ErrAddress) {
		err = usage.Errorf("%s: %v", databaseName, err)
	}
	return db, err
}

// patiently repeats fn while its service is away, saying so once, until ctx ends; then it returns fn's own error.
func (a *app) patiently(ctx context.Context, service string, fn func() error) error {
	said := false
	for wait := retryFirst; ; wait = min(2*wait, retryAtMost) {
		err := fn()
		if err == nil || !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, broker.ErrUnavailable) {
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		if !said {
			fmt.Fprintf(a.Stderr, "waiting for %s: %s\n", service, usage.OneLine(err))
			said = true
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// database opens the database that the environment names, without a namespace.
func (a *app) database(ctx context.Context) (*postgres.DB, error) {
	url, err := usage.Secret(a.Getenv, databaseName)
	if err != nil {
		return nil, err
	}
	if url == "" {
		return nil, missingDatabase()
	}
	ctx, cancel := context.WithTimeout(ctx, giveUp)
	defer cancel()
	return a.connect(ctx, url)
}
