package failover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"amends/internal/ledger"
	"amends/internal/pgtest"
	"amends/internal/roles"
	"amends/internal/store"
	"amends/internal/store/postgres"
)

// failing is a namespace that remembers what commits failed with.
type failing struct {
	*postgres.Namespace
	mu   sync.Mutex
	seen []error
}

func (f *failing) Commit(ctx context.Context, t store.Token, b *ledger.Batch) error {
	err := f.Namespace.Commit(ctx, t, b)
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.seen = append(f.seen, err)
	}
	return err
}

// met reports whether a commit failed with a SQLSTATE.
func (f *failing) met(code string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, err := range f.seen {
		var cause *pgconn.PgError
		if errors.As(err, &cause) && cause.Code == code {
			return true
		}
	}
	return false
}

// S12: a commit that the server ends as the victim of a deadlock, or because it could not be serialized, has changed nothing: the
// worker that had it makes the whole batch again, and does not end.
// Shows F7.
func TestS12DeadlockAndSerializationFailureAreTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code string
		meet func(w *world, load func())
	}{"deadlock": {"40P01", (*world).deadlock}, "serialization failure": {"40001", (*world).unserializable}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.New(t)
			// The worker looks for a deadlock after so long, before its lock timeout ends the wait.
			run(t, url, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''2s''', current_database()); END $$`)
			w := newWorld(t, url)
			f := &failing{Namespace: w.ns}
			r := w.startOn(f, "first", roles.All()...)
			n := 0
			for range 5 { // on a busy machine the two may miss each other
				c.meet(w, func() {
					w.load(padding(n, 1)...)
					n++
				})
				w.frontier(fmt.Sprint(n))
				if f.met(c.code) {
					break
				}
			}
			if !f.met(c.code) {
				t.Fatalf("no commit met %s: %v", c.code, f.seen)
			}
			select {
			case <-r.done:
				t.Fatalf("the roles ended with %v", r.err)
			default:
			}
			w.whole()
			w.shown()
			w.verified()
			r.stops()
		})
	}
}

// deadlock loads a record whose commit waits, with its row locked, for a session that then waits for that row.
func (w *world) deadlock(load func()) {
	w.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, w.url)
	w.ok(err)
	defer conn.Close(ctx)
	for _, sql := range []string{"SET deadlock_timeout = '60s'", "BEGIN", "LOCK TABLE amends.journal IN EXCLUSIVE MODE"} {
		_, err = conn.Exec(ctx, sql)
		w.ok(err)
	}
	load()
	w.waits(conn.PgConn().PID())
	for _, sql := range []string{"SELECT FROM amends.partitions WHERE partition = 0 FOR UPDATE", "ROLLBACK"} {
		_, err = conn.Exec(ctx, sql)
		w.ok(err)
	}
}

// unserializable makes the next insert into the journal fail once, as a server does whose transactions are serializable.
func (w *world) unserializable(load func()) {
	w.Helper()
	run(w.T, w.url, "CREATE SEQUENCE amends.inserts") // a number is not taken back with its transaction
	run(w.T, w.url, `CREATE FUNCTION amends.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF pg_catalog.nextval('amends.inserts') = 1 THEN RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001'; END IF;
		RETURN NULL; END $$`)
	run(w.T, w.url, "CREATE TRIGGER refuse BEFORE INSERT ON amends.journal FOR EACH STATEMENT EXECUTE FUNCTION amends.refuse()")
	load()
}
