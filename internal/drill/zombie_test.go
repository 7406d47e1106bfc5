package drill

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// durable is everything that the roles have written, but who may try (leases) and the epochs of workers, of which one more is
// harmless. besides names further columns that do not count.
func (s *space) durable(besides ...string) (rows []string) {
	s.t.Helper()
	left := map[string][]string{"partitions": {"epoch", "nonce"}}
	for _, b := range besides {
		table, column, _ := strings.Cut(b, ".")
		left[table] = append(left[table], column)
	}
	for _, table := range []string{"partitions", "keys", "journal", "quarantine", "relay_progress", "receipts", "view_progress", "view_keys", "view_rows", "protocol_errors"} {
		without := "'{" + strings.Join(left[table], ",") + "}'::text[]"
		for _, row := range s.query("SELECT md5((to_jsonb(t) - " + without + ")::text) FROM amends." + table + " t WHERE namespace_id = $NS") {
			rows = append(rows, table+" "+row[0])
		}
	}
	slices.Sort(rows)
	return rows
}

// beside names what the processes beside a stopped one of a role may change with nothing to do: on a busy machine a relay or a view
// may take its own lease again. And a stopped relay may repeat what it had sent, which the view passes over.
func beside(role string) (columns []string) {
	for _, other := range roles()[1:] {
		if other != role {
			columns = append(columns, positions(other)+".term", positions(other)+".nonce")
		}
	}
	if role == "relay" {
		columns = append(columns, "view_progress.output_offset")
	}
	return columns
}

// backend says what a server process is doing.
func (s *space) backend(pid string) string {
	s.t.Helper()
	rows := s.query("SELECT state, wait_event, CASE WHEN query LIKE '%COPY%' OR query LIKE '%copy%' THEN 'copy' ELSE '' END FROM pg_stat_activity WHERE pid = " + pid)
	if len(rows) != 1 {
		return "ended"
	}
	return strings.TrimSpace(strings.Join(rows[0], " "))
}

// input makes the next commit of a role certain: one record on partition 0.
func (s *space) input(n int) { s.send(movement(fmt.Sprintf("Z-%d", n), n%s.keys, 0, 5, n%days)) }

// The valve lets through more than a COPY's beginning and less than one record of a bulk, with what goes beside it: how many
// records the role's poll finds at once is left to chance.
const through, begun, big = 45_000, 20_000, 64_000

// bulk is a batch of some megabytes.
func (s *space) bulk(n int) {
	var records []*kgo.Record
	for i := range 60 {
		records = append(records, &kgo.Record{Key: []byte(keyOf(0, 0)), Value: []byte(fmt.Sprintf("no assertion Z%d-%d %s", n, i, strings.Repeat("x", big)))})
	}
	s.send(records...)
}

// stopInCommit stops the holder of a role by SIGSTOP while its backend holds the row lock: its transaction is applied and
// the COMMIT is not sent, or with a valve it stands in the middle of its COPY. Where a timeout of its own came before the stop, as
// may be on a busy machine, the holder goes on and is stopped in another commit.
func (s *space) stopInCommit(role string, holder *process, v *valve) (doing string) {
	s.t.Helper()
	for try := range 5 {
		if v != nil {
			doing = s.stopInCopy(holder, try, v)
		} else {
			doing = s.stopBeforeCommit(role, holder, try)
		}
		if doing != "" {
			return doing
		}
		s.t.Logf("the stop of the %s came too late for its commit: once more", role)
		if v != nil {
			v.open()
		}
		holder.resume()
		s.drained()
	}
	s.t.Fatalf("the %s was never stopped in its commit", role)
	return ""
}

// stopBeforeCommit stops the holder while its backend waits for the row, which it then gets.
func (s *space) stopBeforeCommit(role string, holder *process, try int) (doing string) {
	s.t.Helper()
	l := s.hold(role)
	defer l.release()
	s.input(10 + try)
	pid := l.waiting()
	holder.pause()
	if !l.blocks(pid) {
		return ""
	}
	l.release()
	return s.inHand(role, pid)
}

// stopInCopy stops a worker whose COPY the valve holds up: that is ended by no timeout of the server's.
func (s *space) stopInCopy(holder *process, try int, v *valve) (doing string) {
	s.t.Helper()
	v.arm(through)
	s.bulk(try)
	pid := ""
	await(s.t, "the COPY is under way", func() bool {
		rows := s.query("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND wait_event = 'ClientRead' AND query ILIKE '%copy%'")
		if len(rows) != 1 || !v.passed(begun, through) {
			return false
		}
		pid = rows[0][0]
		return true
	})
	holder.pause()
	return s.inHand("source", pid)
}

// inHand says what a backend does once it waits for its stopped client: nothing unless somebody holds the role's row, which can be
// that backend alone. A standby may have ended it by then.
func (s *space) inHand(role, pid string) (doing string) {
	s.t.Helper()
	await(s.t, "the backend of the stopped "+role+" waits for it", func() bool {
		doing = s.backend(pid)
		return strings.Contains(doing, "ClientRead") || doing == "ended"
	})
	if doing == "ended" {
		return doing
	}
	_, err := s.try("SELECT 1 FROM amends." + positions(role) + " WHERE namespace_id = $NS FOR UPDATE NOWAIT")
	if err == nil || !strings.Contains(err.Error(), "could not obtain lock") {
		return ""
	}
	return doing
}

// haunt runs one zombie: the holder is stopped, a standby takes over and does all the work there is, then the holder goes on.
// It must be refused and write nothing at all.
func (s *space) haunt(role string, holder, standby *process, n int, stop, wake func()) (took time.Duration, code int) {
	s.t.Helper()
	term := s.number(terms(role))
	before := time.Now() // a commit that the stop comes into may have begun by now
	stop()
	began := time.Now()
	if standby == nil {
		s.role(role)
	}
	s.moves("the standby "+role+" installs itself", terms(role), term)
	s.input(n + 1)
	s.drained()
	took = time.Since(began)
	rows := s.durable(beside(role)...)
	wake()
	holder.resume()
	code = holder.refused(before)
	if d := cmp.Diff(rows, s.durable(beside(role)...)); d != "" {
		s.t.Errorf("the zombie changed rows:\n%s", d)
	}
	s.input(n + 2) // whatever it may still have sent lies before this
	s.drained()
	return took, code
}

// Zombies: processes stopped by SIGSTOP past their takeover, holding the row lock in mid commit, in mid COPY, or at any
// moment, are refused with no row.
// Shows F12, I18.
func TestZombies(t *testing.T) {
	t.Parallel()
	rng := choices(t)
	count := size(t, zombiesEnv, 4, 2)
	modes := map[string]int{}
	took := map[string][]time.Duration{}
	var duplicates int
	for i := range count {
		role := roles()[i%3]
		t.Run(fmt.Sprintf("%d %s", i, role), func(t *testing.T) {
			mode, d, found := zombie(t, role, rng, i/3)
			modes[role+" "+mode]++
			took[role] = append(took[role], d)
			duplicates += found.duplicates
		})
	}
	for role, d := range took {
		figure(t, "from the stop of a %s until a standby has done all its work: %s", role, spread(d))
	}
	figure(t, "%d zombies refused with zero rows, %v; %d repetitions at the topic", count, modes, duplicates)
}

// zombie runs one on a namespace of its own.
func zombie(t *testing.T, role string, rng *rand.Rand, n int) (mode string, took time.Duration, found result) {
	s := newSpace(t, shape{1, 3})
	v, through := s.newValve()
	direct := s.Env["AMENDS_DATABASE_URL"]
	var holder, standby *process
	var code int
	for _, r := range roles() {
		if r != role {
			s.role(r)
		}
	}
	s.Env["AMENDS_DATABASE_URL"] = through
	holder = s.role(role)
	s.Env["AMENDS_DATABASE_URL"] = direct
	s.input(0)
	s.drained()
	if role != "source" { // a second worker would take its part of the partitions at once: it is started after the stop
		standby = s.role(role)
	}
	switch {
	case role == "source" && n%2 == 0:
		took, code = s.haunt(role, holder, standby, 2, func() { mode = s.stopInCommit(role, holder, v) }, v.open)
		if !strings.Contains(mode, "copy") || strings.Contains(mode, "idle") {
			t.Errorf("not in the middle of a COPY: %s", mode)
		}
	case role == "source" || n%2 == 0:
		took, code = s.haunt(role, holder, standby, 2, func() { mode = s.stopInCommit(role, holder, nil) }, v.open)
	default:
		st := s.stream(rng.Uint64(), 300)
		s.moves("the first records", shown, 20)
		time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
		mode = "at any moment"
		took, code = s.haunt(role, holder, standby, 2, func() { holder.pause(); st.stop() }, v.open)
	}
	return fmt.Sprintf("%s, code %d", mode, code), took, s.check(nil)
}

// A relay's backend is terminated in mid publication and the relay stands still past its lease; B takes over. A's receipts
// are refused (C39). Twenty more outputs go through B.
// Shows B3.
func TestC39TerminatedBackendOfARelay(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shape{1, 3})
	s.role("source")
	s.role("view")
	a := s.role("relay")
	s.input(0)
	s.drained()
	s.role("relay")
	held := time.Now()
	l := s.hold("relay")
	for n := range 10 {
		s.input(n + 1)
	}
	pid := l.waiting()
	a.pause()
	term := s.number(relayTerms)
	s.query("SELECT pg_terminate_backend(" + pid + ")")
	l.release()
	s.moves("B takes over", relayTerms, term)
	for n := range 10 {
		s.input(n + 11)
	}
	s.drained()
	before := s.durable(beside("relay")...)
	a.resume()
	a.refused(held)
	if d := cmp.Diff(before, s.durable(beside("relay")...)); d != "" {
		t.Errorf("A wrote after B took over:\n%s", d)
	}
	figure(t, "%v", s.check(nil))
}
