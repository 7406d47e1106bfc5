package failover

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"amends/internal/pgtest"
	"amends/internal/pipelinetest"
	"amends/internal/roles"
	"amends/internal/usage"
)

// rotated is the role whose password changes.
const rotated = "amends_test_rotated"

// A password is changed under running roles: open connections go on, new ones are refused and waited for until the file that
// AMENDS_DATABASE_URL_FILE names has the new one, and nothing is started again.
// Shows F19.
func TestCredentialsRotated(t *testing.T) {
	admin := pgtest.New(t, pgtest.Fast)
	forget := "DO $$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = '" + rotated + "') THEN REASSIGN OWNED BY " + rotated +
		" TO CURRENT_USER; DROP OWNED BY " + rotated + "; DROP ROLE " + rotated + "; END IF; END $$"
	run(t, admin, forget)
	run(t, admin, "CREATE ROLE "+rotated+" LOGIN SUPERUSER PASSWORD 'one'")
	t.Cleanup(func() { run(t, admin, forget) })
	file := filepath.Join(t.TempDir(), "url")
	environment := func(name string) string { return map[string]string{"AMENDS_DATABASE_URL_FILE": file}[name] }
	w := newWorld(t, secret(t, file, admin, "one"), func(s *setup) {
		s.database.Credentials = func() (string, error) { return usage.Secret(environment, "AMENDS_DATABASE_URL") }
	})
	applied := func(sequence string) {
		t.Helper()
		w.await("sequence of the view", sequence, func() (string, error) {
			return one(admin, "SELECT next_sequence::text FROM amends.view_progress WHERE partition = 0")
		})
	}
	backends := func() string {
		t.Helper()
		pids, err := one(admin, "SELECT coalesce(string_agg(pid::text, ' ' ORDER BY pid), '') FROM pg_stat_activity WHERE usename = '"+rotated+"'")
		w.ok(err)
		return pids
	}
	all := w.start("one", roles.All()...)
	w.load(pipelinetest.Before...)
	applied("5")
	before := backends()
	run(t, admin, "ALTER ROLE "+rotated+" PASSWORD 'two'")
	w.load(pipelinetest.Correction...)
	applied("10")
	after := strings.Fields(backends())
	for _, pid := range strings.Fields(before) {
		if !slices.Contains(after, pid) {
			t.Errorf("connections %q became %q when the password changed", before, after)
		}
	}
	if before == "" {
		t.Error("no connection under the role")
	}

	run(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+rotated+"'")
	w.load(pipelinetest.CancelLastDay...)
	stays := func(while string) {
		t.Helper()
		select {
		case <-all.done:
			t.Fatalf("the roles ended while %s: %v", while, all.err)
		case <-time.After(2 * time.Second):
		}
	}
	stays("the file had the old password")
	w.ok(os.Remove(file)) // some replace a file in two steps
	stays("there was no file")
	if left := backends(); left != "" {
		t.Errorf("connections %q under the old password", left)
	}
	secret(t, file, admin, "two")
	applied("11")
	all.stops()
	w.db.Close()
}

// secret writes the URL of a database under the role and a password to a file, all at once, and returns it.
func secret(t *testing.T, file, base, password string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(rotated, password)
	err = os.WriteFile(file+".new", []byte(u.String()+"\n"), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u.String()
}
