package reader

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// Rebuild returns the record of origin of any namespace of the database, nil if no rebuild made it, and whether the
// namespace exists.
func (r *Snapshot) Rebuild(ctx context.Context, namespace string) (made *store.Rebuild, exists bool, err error) {
	var recorded bool
	var phase string
	var started, finished *time.Time
	b := &store.Rebuild{Namespace: namespace}
	err = r.session.QueryRow(ctx, []any{&recorded, &b.Origin, &b.Topic, &b.Incarnation, &phase, &b.Status, &started, &finished}, "read_rebuild", namespace)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, session.Before("read rebuild of "+namespace, err)
	case !recorded:
		return nil, true, nil
	}
	b.Phase = store.RebuildPhase(phase)
	if started != nil {
		b.Started = *started
	}
	if finished != nil {
		b.Finished = *finished
	}
	return b, true, nil
}
