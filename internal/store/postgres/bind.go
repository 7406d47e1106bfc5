package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// Bind binds the namespace to its output topic once (S9). The same binding again succeeds; another is ErrBinding; what
// S9 forbids is ErrBindRefused. Both position rows of every partition begin at zero. After ErrCommitUnknown the caller
// binds again, which is idempotent, or reads Binding.
func (n *Namespace) Bind(ctx context.Context, o manifest.Output) error {
	return n.db.pool.Transact(ctx, "bind output "+o.Topic, func(ctx context.Context, s *session.Session) error {
		if _, err := s.Exec(ctx, "lock_bindings"); err != nil {
			return err
		}
		bound, err := n.findBinding(ctx, s)
		switch {
		case err != nil:
			return err
		case bound != nil && *bound != o:
			return fmt.Errorf("bound to %s (%s, %d partitions): %w", bound.Topic, bound.Incarnation, bound.Partitions, store.ErrBinding)
		case bound != nil:
			return nil
		}
		if err := n.bindable(ctx, s, o); err != nil {
			return err
		}
		if _, err := s.Exec(ctx, "insert_binding", n.id, o.Partitions, o.Topic, o.Incarnation); err != nil {
			return err
		}
		for _, name := range []string{"insert_relay_progress", "insert_view_progress", "insert_leases"} {
			if _, err := s.Exec(ctx, name, n.id, o.Partitions); err != nil {
				return err
			}
		}
		return nil
	})
}

// bindable says why S9 forbids the binding. The caller holds the lock of bindings.
func (n *Namespace) bindable(ctx context.Context, s *session.Session, o manifest.Output) error {
	if o.Partitions != n.cfg.Partitions {
		return fmt.Errorf("it has %d partitions, the source %d: %w", o.Partitions, n.cfg.Partitions, store.ErrBindRefused)
	}
	var other, use, delivered string
	err := s.QueryRow(ctx, []any{&other, &use}, "binding_conflict", o.Incarnation, o.Topic, n.id)
	if err == nil {
		return fmt.Errorf("it is the %s of namespace %q: %w", use, other, store.ErrBindRefused)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if err := s.QueryRow(ctx, []any{&delivered}, "delivered", n.id); err != nil {
		return err
	}
	if delivered != "" {
		return fmt.Errorf("the namespace has %s without a binding: %w", delivered, store.ErrBindRefused)
	}
	return nil
}

// Binding returns the output the namespace is bound to, nil if none.
func (n *Namespace) Binding(ctx context.Context) (o *manifest.Output, err error) {
	err = n.db.pool.Read(ctx, "read binding", func(ctx context.Context, s *session.Session) error {
		o, err = n.findBinding(ctx, s)
		return err
	})
	return o, err
}

func (n *Namespace) findBinding(ctx context.Context, s *session.Session) (*manifest.Output, error) {
	var o manifest.Output
	err := s.QueryRow(ctx, []any{&o.Topic, &o.Incarnation, &o.Partitions}, "find_binding", n.id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &o, err
}
