package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres/session"
	"amends/internal/store/postgres/trail"
)

// Namespace is one namespace's operations (S1). Safe for concurrent use.
type Namespace struct {
	db     *DB
	cfg    *manifest.Config
	keys   map[ledger.Partition]*viewKeys
	looked trail.Trail // how far the outbox was looked through
	mu     sync.Mutex  // guards keys
	id     int32
}

// Config returns the configuration the namespace was opened with.
func (n *Namespace) Config() *manifest.Config { return n.cfg }

// Init creates the namespace of cfg unless it exists, and returns it. An existing one is left as it is: ErrConfig if its
// configuration or source topic differs, ErrBindRefused if the source is another namespace's output (S2, S9).
func (db *DB) Init(ctx context.Context, cfg *manifest.Config, sourceTopic string) (*Namespace, error) {
	n, err := db.find(ctx, cfg, sourceTopic)
	if !errors.Is(err, store.ErrNoNamespace) {
		return n, err
	}
	verb := fmt.Sprintf("initialise namespace %q", cfg.Namespace)
	err = db.pool.Transact(ctx, verb, func(ctx context.Context, s *session.Session) error {
		if _, err := s.Exec(ctx, "lock_bindings"); err != nil {
			return err
		}
		var other string
		switch err := s.QueryRow(ctx, []any{&other}, "source_is_output", cfg.SourceIncarnation); {
		case err == nil:
			return fmt.Errorf("its source is the output of %q: %w", other, store.ErrBindRefused)
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
		var id int32
		digest := cfg.Digest()
		err := s.QueryRow(ctx, []any{&id}, "insert_namespace", cfg.Partitions, int32(StorageFormat), cfg.QuantityScale, cfg.Namespace,
			sourceTopic, cfg.SourceIncarnation, digest[:], cfg.Canonical())
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // another process was first
		}
		if err == nil {
			_, err = s.Exec(ctx, "insert_partitions", id, cfg.Partitions)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return db.find(ctx, cfg, sourceTopic)
}

// Namespace returns the existing namespace of cfg: ErrNoNamespace, or ErrConfig if its configuration or the format of
// what it stores differs (S2).
func (db *DB) Namespace(ctx context.Context, cfg *manifest.Config) (*Namespace, error) {
	return db.find(ctx, cfg, "")
}

// find reads the namespace's row and compares it; an empty sourceTopic is not compared.
func (db *DB) find(ctx context.Context, cfg *manifest.Config, sourceTopic string) (*Namespace, error) {
	n := &Namespace{db: db, cfg: cfg, keys: map[ledger.Partition]*viewKeys{}}
	var (
		format         int32
		topic          string
		digest, config []byte
	)
	verb := fmt.Sprintf("open namespace %q", cfg.Namespace)
	err := db.pool.Read(ctx, verb, func(ctx context.Context, s *session.Session) error {
		err := s.QueryRow(ctx, []any{&n.id, &format, &topic, &digest, &config}, "find_namespace", cfg.Namespace)
		if errors.Is(err, pgx.ErrNoRows) {
			return store.ErrNoNamespace
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	given := cfg.Digest()
	switch {
	case !bytes.Equal(digest, given[:]):
		return nil, fmt.Errorf("%s: %s: %w", verb, differences(config, cfg), store.ErrConfig)
	case format != StorageFormat:
		return nil, fmt.Errorf("%s: storage format %d, this binary has %d: %w", verb, format, StorageFormat, store.ErrConfig)
	case sourceTopic != "" && topic != sourceTopic:
		return nil, fmt.Errorf("%s: source topic stored %q, given %q: %w", verb, topic, sourceTopic, store.ErrConfig)
	}
	return n, nil
}

// differences says in which members a stored canonical configuration is not cfg.
func differences(stored []byte, cfg *manifest.Config) string {
	file := append([]byte(`{"source_topic":"stored","config":`), stored...)
	m, err := manifest.Parse(append(file, '}'))
	if err != nil {
		return "the stored configuration cannot be read by this binary"
	}
	return strings.Join(manifest.Differences(m.Config, cfg), "; ")
}
