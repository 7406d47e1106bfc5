package drill

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// durable is everything that the roles have written, but who may try (leases) and the epochs of workers, of which one more is
// harmless. A stopped relay may still repeat what it had sent, which the view passes over: besides names what does not count.
func (s *space) durable(besides ...string) (rows []string) {
	s.t.Helper()
	left := map[string]string{"partitions": "{epoch,nonce}"}
	for _, b := range besides {
		table, column, _ := strings.Cut(b, ".")
		left[table] = "{" + column + "}"
	}
	for _, table := range []string{"partitions", "keys", "journal", "quarantine", "relay_progress", "receipts", "view_progress", "view_keys", "view_rows", "protocol_errors"} {
		for _, row := range s.query("SELECT md5((to_jsonb(t) - '" + cmp.Or(left[table], "{}") + "'::text[])::text) FROM amends." + table + " t WHERE namespace_id = $NS") {
			rows = append(rows, table+" "+row[0])
		}
	}
	slices.Sort(rows)
	return rows
}

// backend says what a server process is doing.
func (s *space) backend(pid string) string {
	s.t.Helper()
	rows := s.query("SELECT state, wait_event, CASE WHEN query LIKE '%COPY%' OR query LIKE '%copy%' THEN 'copy' ELSE '' END FROM pg_stat_activity WHERE pid = " + pid)
	if len(rows) != 1 {
		return "ended"
	}
	return strings.Join(rows[0], " ")
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
// the COMMIT is not sent, or with a valve it stands in the middle of its COPY.
func (s *space) stopInCommit(role string, holder *process, n int, v *valve) (doing string) {
	s.t.Helper()
	l := s.hold(role)
	defer l.release()
	if v != nil {
		v.arm(through)
		s.bulk(n)
	} else {
		s.input(n)
	}
	pid := l.waiting()
	if v != nil {
		await(s.t, "the COPY is under way", func() bool { return v.passed(begun, through) })
	}
	holder.pause()
	l.release()
	await(s.t, "the backend of the stopped "+role+" waits for it", func() bool {
		doing = s.backend(pid)
		return strings.Contains(doing, "ClientRead") && !strings.HasPrefix(doing, "idle ClientRead")
	})
	return doing
}

// haunt runs one zombie: the holder is stopped, a standby takes over and does all the work there is, then the holder goes on.
// It must end with code 10 and write nothing at all.
func (s *space) haunt(role string, holder, standby *process, n int, stop, wake func()) (took time.Duration) {
	s.t.Helper()
	term := s.number(terms(role))
	stop()
	began := time.Now()
	if standby == nil {
		s.role(role)
	}
	s.moves("the standby "+role+" installs itself", terms(role), term)
	s.input(n + 1)
	s.drained()
	took = time.Since(began)
	var besides []string
	if role == "relay" {
		besides = []string{"view_progress.output_offset"}
	}
	before := s.durable(besides...)
	wake()
	holder.resume()
	holder.ends(10, "")
	if d := gocmp.Diff(before, s.durable(besides...)); d != "" {
		s.t.Errorf("the zombie changed rows:\n%s", d)
	}
	s.input(n + 2) // whatever it may still have sent lies before this
	s.drained()
	return took
}

// Zombies: processes stopped by SIGSTOP past their takeover, holding the row lock in mid commit, in mid COPY, or at any
// moment, are refused with code 10 and no row.
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
	figure(t, "%d zombies refused with code 10 and zero rows, %v; %d repetitions at the topic", count, modes, duplicates)
}

// zombie runs one on a namespace of its own.
func zombie(t *testing.T, role string, rng *rand.Rand, n int) (mode string, took time.Duration, found result) {
	s := newSpace(t, shape{1, 3})
	v, through := s.newValve()
	direct := s.Env["AMENDS_DATABASE_URL"]
	var holder, standby *process
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
		took = s.haunt(role, holder, standby, 2, func() { mode = s.stopInCommit(role, holder, 1, v) }, v.open)
		if !strings.Contains(mode, "copy") || strings.Contains(mode, "idle") {
			t.Errorf("not in the middle of a COPY: %s", mode)
		}
	case role == "source" || n%2 == 0:
		took = s.haunt(role, holder, standby, 2, func() { mode = s.stopInCommit(role, holder, 1, nil) }, v.open)
	default:
		st := s.stream(rng.Uint64(), 300)
		s.moves("the first records", shown, 20)
		time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
		mode = "at any moment"
		took = s.haunt(role, holder, standby, 2, func() { holder.pause(); st.stop() }, v.open)
	}
	return mode, took, s.check(nil)
}

// A relay's backend is terminated in mid publication and the relay stands still past its lease; B takes over. A's receipts
// are refused (C39). Twenty more outputs go through B.
func TestC39TerminatedBackendOfARelay(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shape{1, 3})
	s.role("source")
	s.role("view")
	a := s.role("relay")
	s.input(0)
	s.drained()
	s.role("relay")
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
	const repeated = "view_progress.output_offset" // A may repeat what it had sent
	before := s.durable(repeated)
	a.resume()
	a.ends(10, "")
	if d := gocmp.Diff(before, s.durable(repeated)); d != "" {
		t.Errorf("A wrote after B took over:\n%s", d)
	}
	figure(t, "%v", s.check(nil))
}
