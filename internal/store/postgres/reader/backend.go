package reader

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"amends/internal/store/postgres/session"
)

// Backend is what the server says of one of its processes. State is pg_stat_activity's, "idle in transaction" for one
// that waits for its client; a role that is not the backend's own sees it empty. Wrote: it holds a transaction id, so
// it has written or locked rows.
type Backend struct {
	State         string
	InTransaction bool
	Wrote         bool
}

// Backend looks at the process of that id, which serves any database; false where there is none.
func (r *Snapshot) Backend(ctx context.Context, pid int32) (b Backend, running bool, err error) {
	err = r.session.QueryRow(ctx, []any{&b.State, &b.InTransaction, &b.Wrote}, "backend_state", pid)
	if errors.Is(err, pgx.ErrNoRows) {
		return Backend{}, false, nil
	}
	return b, err == nil, session.Before(fmt.Sprintf("look at backend %d", pid), err)
}

// ServerVersion returns the server's version as it prints it, such as 18.4.
func (r *Snapshot) ServerVersion(ctx context.Context) (version string, err error) {
	err = r.session.QueryRow(ctx, []any{&version}, "server_version")
	return version, session.Before("read server version", err)
}
