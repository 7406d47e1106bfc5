package faultwire_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"amends/internal/ledger"
	"amends/internal/store/postgres"
)

// claimant is a role that may work and may end its own backends only.
const claimant = "amends_test_claimant"

// holds locks the partition row in a session of the given URL's user and says nothing more.
func (p *plain) holds(address string) *pgx.Conn {
	p.Helper()
	conn, err := pgx.Connect(p.Context(), address)
	p.ok(err)
	p.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(p.Context(), "BEGIN")
	p.ok(err)
	_, err = conn.Exec(p.Context(), "SELECT FROM amends.partitions WHERE namespace_id = (SELECT namespace_id FROM amends.namespaces WHERE namespace = $1) FOR UPDATE", p.cfg.Namespace)
	p.ok(err)
	return conn
}

// asClaimant opens the namespace as the other role.
func (p *plain) asClaimant() *postgres.Namespace {
	p.Helper()
	u, err := url.Parse(p.url)
	p.ok(err)
	u.User = url.User(claimant)
	db := openDB(p, u.String(), 4)
	p.Cleanup(db.Close)
	n, err := db.Namespace(p.Context(), p.cfg)
	p.ok(err)
	return n
}

func blockedDatabase(t *testing.T) *database {
	t.Helper()
	d := newDatabase(t, server(t).New(), true, 4)
	for _, sql := range []string{"CREATE ROLE " + claimant + " LOGIN", "GRANT USAGE ON SCHEMA amends TO " + claimant, "GRANT ALL ON ALL TABLES IN SCHEMA amends TO " + claimant} {
		if _, err := d.conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// SC32: a session of another role holds the row. The claimant may not end it: the claim fails by its lock timeout, which is
// definite, the holder lives, and the claim succeeds once the row is free.
// Shows F7, N2.
func TestSC32ClaimBlockedByAnotherRole(t *testing.T) {
	t.Parallel()
	p := newPlain(t, blockedDatabase(t))
	holder := p.holds(p.url)
	n := p.asClaimant()
	_, err := n.Claim(t.Context(), 0)
	var refused *pgconn.PgError
	if classOf(err) != definite || !errors.As(err, &refused) || refused.Code != "55P03" {
		t.Fatalf("got %v", err)
	}
	if name := fmt.Sprintf("held by process %d of ", holder.PgConn().PID()); !strings.Contains(err.Error(), name) {
		t.Errorf("%q does not say %q", err, name)
	}
	_, err = holder.Exec(t.Context(), "ROLLBACK")
	p.ok(err) // nobody has ended it
	o, err := n.Claim(t.Context(), 0)
	p.ok(err)
	if o.Token.Epoch != 1 {
		t.Errorf("epoch %d: the claim that failed installed one", o.Token.Epoch)
	}
}

// A claim that is blocked, by a session of the same role or of another, ends when it is cancelled, installs nothing, and
// leaves no backend waiting. The production lifecycle cancels it as the role ends.
// Shows F7, N2.
func TestS12CancellationWhileAClaimIsBlocked(t *testing.T) {
	t.Parallel()
	d := blockedDatabase(t)
	for _, other := range []bool{false, true} {
		name := "same role"
		if other {
			name = "other role"
		}
		t.Run(name, func(t *testing.T) {
			p := newPlain(t, d)
			holder := p.holds(p.url)
			n := p.ns.Namespace
			if other {
				n = p.asClaimant()
			}
			ctx, cancel := context.WithCancel(t.Context())
			m := newMember(p.cfg, n)
			m.within(ctx, p.cfg, n)
			ended := make(chan error, 1)
			go func() {
				m.life.Assigned(ctx, []ledger.Partition{0})
				_, err := m.life.Positions(ctx, []ledger.Partition{0})
				ended <- err
			}()
			waiting := d.awaitBlocked(t)
			cancel()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("positioned")
				}
			case <-time.After(6 * time.Second): // less than the three lock timeouts without it
				t.Fatal("the assignment goes on after the cancellation")
			}
			for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				var still bool
				p.ok(d.conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND cardinality(pg_blocking_pids(pid)) > 0)", waiting).Scan(&still))
				if !still {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the backend still waits")
				}
			}
			_, err := holder.Exec(t.Context(), "COMMIT")
			p.ok(err)
			o, err := p.direct.Observe(t.Context(), 0)
			p.ok(err)
			if o.Token.Epoch != 0 {
				t.Errorf("epoch %d was installed", o.Token.Epoch)
			}
			m.life.Close()
		})
	}
}
