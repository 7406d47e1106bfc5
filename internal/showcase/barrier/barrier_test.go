package barrier_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/pgtest"
	"amends/internal/showcase/barrier"
)

// world is a server with a table, reached through a barrier.
type world struct {
	t      *testing.T
	b      *barrier.Barrier
	direct *pgx.Conn
}

func newWorld(t *testing.T) *world {
	t.Helper()
	url := pgtest.New(t, pgtest.Fast)
	b, err := barrier.Listen(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	direct, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = direct.Close(context.Background()) })
	w := &world{t: t, b: b, direct: direct}
	w.run("CREATE TABLE kept (n integer)")
	return w
}

func (w *world) run(sql string) {
	w.t.Helper()
	if _, err := w.direct.Exec(w.t.Context(), sql); err != nil {
		w.t.Fatal(err)
	}
}

// rows counts what is durable.
func (w *world) rows() (n int) {
	w.t.Helper()
	if err := w.direct.QueryRow(w.t.Context(), "SELECT count(*) FROM kept").Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// state is the server's word on one of its processes, "" when there is none.
func (w *world) state(pid int32) string {
	w.t.Helper()
	var state string
	err := w.direct.QueryRow(w.t.Context(), "SELECT state FROM pg_stat_activity WHERE pid = $1", pid).Scan(&state)
	if err != nil && err != pgx.ErrNoRows {
		w.t.Fatal(err)
	}
	return state
}

// client is a connection through the barrier with the statement put.
func (w *world) client() *pgx.Conn {
	w.t.Helper()
	c, err := pgx.Connect(w.t.Context(), w.b.URL())
	if err != nil {
		w.t.Fatal(err)
	}
	for name, sql := range map[string]string{"put": "INSERT INTO kept VALUES ($1)", "other": "INSERT INTO kept VALUES (-$1::integer)"} {
		if _, err := c.Prepare(w.t.Context(), name, sql); err != nil {
			w.t.Fatal(err)
		}
	}
	return c
}

// transact runs a statement in a transaction and reports how COMMIT ended.
func transact(ctx context.Context, c *pgx.Conn, statement string, n int) error {
	for _, step := range []func() error{
		func() error { _, err := c.Exec(ctx, "BEGIN"); return err },
		func() error { _, err := c.Exec(ctx, statement, n); return err },
		func() error { _, err := c.Exec(ctx, "COMMIT"); return err },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// held runs a transaction in the background until it is held, and returns what ends its process.
func (w *world) held(p barrier.Point) (h *barrier.Hold, kill func() error) {
	w.t.Helper()
	h = w.b.Arm(p)
	c := w.client()
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- transact(ctx, c, "put", 1) }()
	select {
	case <-h.Reached():
	case err := <-ended:
		w.t.Fatalf("the transaction ended: %v", err)
	case <-time.After(time.Minute):
		w.t.Fatal("nothing was held")
	}
	return h, func() error {
		cancel()
		_ = c.PgConn().Conn().Close()
		return <-ended
	}
}

// gone waits until the server's process has ended.
func (w *world) gone(pid int32) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); w.state(pid) != ""; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("server process %d still runs: %s", pid, w.state(pid))
		}
	}
}

// A process that dies at each moment leaves what the moment says: nothing before COMMIT, everything after it.
func TestMomentsOfATransaction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		moment barrier.Moment
		state  string // of the server's process while it is held
		rows   int    // durable after the kill
	}{
		{"before the statement", barrier.BeforeStatement, "idle in transaction", 0},
		{"before COMMIT", barrier.BeforeCommit, "idle in transaction", 0},
		{"after COMMIT", barrier.AfterCommit, "idle", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h, kill := w.held(barrier.Point{Statement: "put", Moment: c.moment})
			if got := w.state(h.Backend()); got != c.state {
				t.Errorf("the server's process is %q, want %q", got, c.state)
			}
			if got := w.rows(); got != c.rows {
				t.Errorf("%d rows while it is held, want %d", got, c.rows)
			}
			if err := kill(); err == nil {
				t.Error("the client was told that it committed")
			}
			w.gone(h.Backend())
			if got := w.rows(); got != c.rows {
				t.Errorf("%d rows after the kill, want %d", got, c.rows)
			}
		})
	}
}

// What is not armed is forwarded: other statements, rolled back transactions, the second transaction after a hold, and
// values larger than any buffer.
func TestOthersPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	c := w.client()
	defer c.PgConn().Conn().Close()
	h := w.b.Arm(barrier.Point{Statement: "put", Moment: barrier.BeforeCommit})
	if err := transact(ctx, c, "other", 1); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"BEGIN", "put", "ROLLBACK"} {
		var args []any
		if sql == "put" {
			args = []any{1}
		}
		if _, err := c.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := transact(ctx, c, "other", 2); err != nil { // what was rolled back is not remembered
		t.Fatal(err)
	}
	var length int
	if err := c.QueryRow(ctx, "SELECT length($1::text)", strings.Repeat("x", 3<<20)).Scan(&length); err != nil || length != 3<<20 {
		t.Errorf("length %d, %v", length, err)
	}
	var long string
	if err := c.QueryRow(ctx, "SELECT repeat('y', 3000000)").Scan(&long); err != nil || len(long) != 3_000_000 {
		t.Errorf("length %d, %v", len(long), err)
	}
	select {
	case <-h.Reached():
		t.Error("held without its statement")
	default:
	}
	if got := w.rows(); got != 2 {
		t.Errorf("%d rows, want 2", got)
	}
	go func() { _ = transact(ctx, c, "put", 3) }()
	select {
	case <-h.Reached():
	case <-time.After(time.Minute):
		t.Error("the statement's own transaction was not held")
	}
}

// COPY streams pass, and belong to their transaction.
func TestCopyIsForwarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	defer c.Close(context.Background())
	rows := make([][]any, 50_000)
	for i := range rows {
		rows[i] = []any{i}
	}
	n, err := c.CopyFrom(t.Context(), pgx.Identifier{"kept"}, []string{"n"}, pgx.CopyFromRows(rows))
	if err != nil || n != 50_000 || w.rows() != 50_000 {
		t.Errorf("%d rows copied, %d durable, %v", n, w.rows(), err)
	}
}

// A barrier that is closed ends its connections and refuses new ones; what it held never reached the server.
func TestCloseLetsNothingThrough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h, kill := w.held(barrier.Point{Statement: "put", Moment: barrier.BeforeCommit})
	w.b.Close()
	w.gone(h.Backend())
	if err := kill(); err == nil {
		t.Error("the client was told that it committed")
	}
	if got := w.rows(); got != 0 {
		t.Errorf("%d rows, want none", got)
	}
	if c, err := pgx.Connect(t.Context(), w.b.URL()); err == nil {
		_ = c.Close(t.Context())
		t.Error("a closed barrier took a connection")
	}
}

// The address through the barrier keeps user, password, database and settings, and asks for no TLS on loopback.
func TestURL(t *testing.T) {
	t.Parallel()
	b, err := barrier.Listen("postgres://ann%40shop:p%2Fw%20d@db.example:6432/ledger?sslmode=verify-full&application_name=x&pool_max_conns=3")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c, err := pgx.ParseConfig(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	if c.User != "ann@shop" || c.Password != "p/w d" || c.Database != "ledger" || c.Host != "127.0.0.1" || c.TLSConfig != nil ||
		c.RuntimeParams["application_name"] != "x" || c.RuntimeParams["pool_max_conns"] != "3" {
		t.Errorf("%s: %+v", b.URL(), c.Config)
	}
	if _, err := barrier.Listen("postgres://h:no-port/"); err == nil {
		t.Error("a wrong address was taken")
	}
}
