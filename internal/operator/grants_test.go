package operator

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/programtest"
)

// A pipeline whose every role has the login that grants makes for it, and no more: it works from end to end, and a role
// with another one's login ends.
func TestAPipelineOfSeparateDatabaseRoles(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	prefix := fmt.Sprintf("operator_%d_", time.Now().UnixNano())
	conn, err := pgx.Connect(t.Context(), x.database)
	if err != nil {
		t.Fatal(err)
	}
	if programtest.Conforms(t, "grants", x.call(0, "amends grants -o json").Stdout) != 1 {
		t.Error("grants -o json answers nothing")
	}
	x.call(2, "amends grants -prefix No")
	sql := x.call(0, "amends grants -prefix "+prefix).Stdout
	logins := map[string]string{}
	for _, job := range []string{"worker", "relay", "view", "audit", "reader"} {
		sql += fmt.Sprintf("CREATE ROLE %[1]s%[2]s_login LOGIN PASSWORD 'p' IN ROLE %[1]s%[2]s;\n", prefix, job)
		u, err := url.Parse(x.database)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(prefix+job+"_login", "p")
		logins[job] = u.String()
	}
	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for job := range logins {
			_, _ = conn.PgConn().Exec(ctx, fmt.Sprintf("DROP ROLE %[1]s_login; DROP OWNED BY %[1]s; DROP ROLE %[1]s", prefix+job)).ReadAll()
		}
		_ = conn.Close(ctx)
	})
	as := func(job string) *shell {
		s := newShell(t, x.Env)
		s.Env["AMENDS_DATABASE_URL"] = logins[job]
		return s
	}
	for job, role := range map[string]string{"worker": "source", "relay": "relay", "view": "view"} {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan programtest.Answer, 1)
		go func() { ended <- as(job).Call(ctx, "amends run -role "+role) }()
		t.Cleanup(func() {
			stop()
			if a := <-ended; a.Code != 0 {
				t.Errorf("%s ended with %d: %s", role, a.Code, a.Stderr)
			}
		})
	}
	for _, f := range []string{"before.jsonl", "correction.jsonl", "cancel-last-day.jsonl"} {
		as("worker").call(0, "amends source load -file "+fixture(t, f))
	}
	x.Write("bad.raw", `{"partition":1,"key":null,"value":"AP8="}`+"\n")
	as("worker").call(0, "amends source load -format raw -file "+x.Path("bad.raw"))
	as("audit").call(0, "amends verify -deep")
	as("audit").call(0, "amends audit -once")
	if a := as("reader").call(0, "amends status"); !strings.HasPrefix(a.First(), "OK  ") {
		t.Error(a.Stdout)
	}
	if a := as("reader").call(0, "amends verify"); !strings.Contains(a.Stderr, "the verification was not recorded") {
		t.Errorf("a reader records verifications: %s", a.Stderr)
	}
	if a := as("reader").call(0, "amends sql -o csv -c 'SELECT close FROM balances WHERE present ORDER BY day'"); a.Stdout != "close\n70\n50\n" {
		t.Error(a.Stdout)
	}
	for job, line := range map[string]string{"reader": "run -role source", "relay": "run -role view", "view": "run -role relay", "worker": "run -role relay", "audit": "run -role source"} {
		ctx, stop := context.WithTimeout(t.Context(), programtest.Deadline)
		if a := as(job).Call(ctx, "amends "+line+" -no-standby -max-wait 1m"); a.Code == 0 || !strings.Contains(a.Cause(), "permission denied") && a.Code != 10 {
			t.Errorf("%s as %s: code %d, %s", line, job, a.Code, a.Stderr)
		}
		stop()
	}
}
