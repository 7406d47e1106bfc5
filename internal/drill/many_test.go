package drill

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/faultwire"
	"amends/internal/kafkatest"
	"amends/internal/pgtest"
)

// C6: sixteen producers with interleaved keys, while partitions are claimed, receipts written and the view runs, with workers
// and standbys that come and go: no deadlock, nothing lost. One transaction id is sent by one producer alone.
// Shows F7, B8.
func TestC6SixteenProducers(t *testing.T) {
	t.Parallel()
	rng := choices(t)
	s := newSpace(t, shape{4, 4})
	s.role("source")
	for _, role := range []string{"relay", "relay", "view", "view"} {
		s.role(role)
	}
	var wg sync.WaitGroup
	const producers, turns = 16, 12
	for i := range producers {
		seed := rng.Uint64()
		wg.Go(func() {
			own := rand.New(rand.NewPCG(seed, uint64(i)))
			var authors []*author
			for p := range s.partitions {
				authors = append(authors, &author{rng: own, partition: p, keys: s.keys, prefix: fmt.Sprintf("P%d-", i)})
			}
			for range turns {
				var records []*kgo.Record
				for range 8 {
					records = append(records, authors[own.IntN(len(authors))].next())
				}
				s.send(records...)
				time.Sleep(time.Duration(own.IntN(40)) * time.Millisecond)
			}
		})
	}
	for range 2 { // rebalances in the middle
		at := s.number(ownerships)
		extra := s.role("source")
		s.moves("a claim", ownerships, at)
		extra.stop()
	}
	wg.Wait()
	found := s.check(nil)
	s.undisturbed()
	if want := producers * turns * 8; found.records != want {
		t.Errorf("%d records, want %d", found.records, want)
	}
	if n := s.number("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
	figure(t, "%d producers, 0 deadlocks; %v", producers, found)
}

// C19: repairs of the same key follow each other and every role crashes between them; there is one row an output, which a
// constraint guarantees: a second one is refused whoever writes it.
// Shows B8.
func TestC19ConcurrentRepairsWithCrashesBetween(t *testing.T) {
	t.Parallel()
	rng := choices(t)
	s := newSpace(t, shape{2, 2})
	s.send(deep(60)...)
	f := s.fleet()
	s.drained()
	st := s.stream(rng.Uint64(), 60)
	for i := range 3 {
		s.send(correct(2+2*i, 10+i), correct(3+2*i, 20+i))
		f.killSome(rng)
	}
	st.stop()
	found := s.check(st)
	f.stop()
	if n := s.number("SELECT count(*) FROM (SELECT 1 FROM amends.view_rows JOIN amends.view_keys USING (namespace_id, partition, key_id) WHERE namespace_id = $NS GROUP BY item, location, day, kind HAVING count(*) > 1) d"); n != 0 {
		t.Errorf("%d outputs have more than one row", n)
	}
	for table, constraint := range map[string]string{"view_rows": "view_rows_pkey", "journal": "journal_pkey", "keys": "keys_pkey", "view_keys": "view_keys_pkey", "receipts": "receipts_pkey"} {
		_, err := s.try("INSERT INTO amends." + table + " SELECT * FROM amends." + table + " LIMIT 1")
		if err == nil || !strings.Contains(err.Error(), constraint) {
			t.Errorf("a second row of %s: %v", table, err)
		}
	}
	figure(t, "%v", found)
}

// C30: a kill -9 between a commit and its publication, while the broker is away, for ten minutes in the long run: the outbox
// keeps what was decided, and all of it is published later.
// Shows F10.
func TestC30BrokerAwayBetweenCommitAndPublication(t *testing.T) {
	t.Parallel()
	outage := span(t, outageEnv, 5*time.Second)
	kafka, database := kafkatest.Server(t), pgtest.Server(t)
	s := newSpaceOn(t, shape{2, 2}, kafka.Brokers(), database.New())
	f := s.fleet()
	s.send(movement("A-1", 0, 0, 5, 0))
	s.drained()
	f.running["relay"].pause()
	s.send(movement("A-2", 0, 0, 5, 1), movement("A-2", 0, 1, 5, 1))
	s.moves("the commit", emitted, s.number(receipted)+2)
	kafka.Kill()
	for _, role := range roles() {
		f.running[role].Kill()
	}
	pending := s.number(emitted) - s.number(receipted)
	f.revive() // every role starts while the broker is away and waits for it
	for _, role := range roles() {
		p := f.running[role]
		await(t, role+" says that it waits", func() bool {
			said := p.Stderr.String()
			return strings.Contains(said, "waiting") || strings.Contains(said, "not ready") || p.Ended()
		})
	}
	time.Sleep(outage)
	for _, role := range roles() {
		if p := f.running[role]; p.Ended() {
			t.Fatalf("%s did not wait\n%s", role, p.Stderr.Last(5))
		}
	}
	if got := s.number(emitted) - s.number(receipted); got != pending || pending < 3 {
		t.Errorf("%d outputs pending, before the outage %d", got, pending)
	}
	kafka.Start()
	found := s.check(nil)
	f.stop()
	if found.duplicates != 0 {
		t.Errorf("%d duplicates at the topic", found.duplicates)
	}
	figure(t, "a broker away for %v, %d outputs pending; %v", outage, pending, found)
}

// PostgreSQL is killed while records stream and stays away for as long as C30's broker: the roles wait for it, say so, and go on by
// themselves. One whose commit was in flight and could not be read for too long ended as unresolved, and its next start goes on.
// Shows F10.
func TestPostgreSQLAwayAndBack(t *testing.T) {
	t.Parallel()
	outage := span(t, outageEnv, 5*time.Second)
	rng := choices(t)
	database := pgtest.Server(t)
	s := newSpaceOn(t, shape{2, 2}, kafkatest.Brokers(t), database.New())
	f := s.fleet()
	st := s.stream(rng.Uint64(), 60)
	s.moves("the first records", shown, 20)
	database.Kill()
	for _, role := range roles() {
		p := f.running[role]
		await(t, role+" says that it waits", func() bool {
			said := p.Stderr.String()
			return strings.Contains(said, "not ready") || strings.Contains(said, "msg=waiting") || strings.Contains(said, "leases not renewed") || p.Ended()
		})
	}
	time.Sleep(outage)
	database.Start()
	began := time.Now()
	at := s.number(shown)
	f.moves("view", at)
	took := time.Since(began)
	st.stop()
	f.revive()
	found := s.check(st)
	s.undisturbed()
	f.stop()
	if found.duplicates != 0 {
		t.Errorf("%d duplicates at the topic", found.duplicates)
	}
	figure(t, "PostgreSQL away for %v, new rows at the view %.1f s after it was back; processes that ended by themselves, by code: %v; %v", outage, took.Seconds(), f.ended, found)
}

// SC16: the relay is killed after the broker's acknowledgement and before the receipt: after the restart every sequence is
// published once, in order.
// Shows F3, B1.
func TestSC16RelayKilledBeforeTheReceipt(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shape{1, 3})
	f := s.fleet()
	s.input(0)
	s.drained()
	for i := range 3 {
		before, _ := s.consume(s.output, 0)
		l := s.hold("relay")
		for n := range 5 {
			s.input(10*i + n + 1)
		}
		l.waiting()
		f.running["relay"].Kill()
		l.release()
		after, _ := s.consume(s.output, 0)
		if len(after) == len(before) {
			t.Error("nothing was acknowledged before the receipt")
		}
		f.revive()
		s.drained()
	}
	found := s.check(nil)
	s.undisturbed()
	f.stop()
	if found.duplicates != 0 {
		t.Errorf("%d duplicates at the topic", found.duplicates)
	}
	figure(t, "%v", found)
}

// SC18: of each role a COMMIT is lost on its way, and another one's reply, and a worker is killed before it sends one: each outcome
// is read from durable state by the same processes. Nothing is lost, nothing doubled, and the bytes are those of an undisturbed run.
// Shows F4.
func TestSC18LostCommits(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shape{1, 3})
	direct := s.Env["AMENDS_DATABASE_URL"]
	proxy := faultwire.New(t, direct)
	s.Env["AMENDS_DATABASE_URL"] = proxy.URL()
	f := s.fleet()
	s.Env["AMENDS_DATABASE_URL"] = direct
	s.input(0)
	s.drained()
	n := 1
	for i, statement := range []string{"advance", "acknowledge", "move_view"} {
		for _, action := range []faultwire.Action{faultwire.CutBefore, faultwire.CutAfter} {
			shot := proxy.Arm(action, 0, faultwire.CommitOf(statement))
			s.input(n)
			n++
			s.drained()
			await(t, fmt.Sprintf("a COMMIT of the %s is %v", roles()[i], action), shot.Done)
		}
	}
	for _, role := range roles() {
		if p := f.running[role]; p.Ended() {
			t.Errorf("%s ended\n%s", role, p.Stderr.Last(5))
		}
	}
	l := s.hold("source")
	s.input(n)
	l.waiting()
	f.running["source"].Kill()
	l.release()
	f.revive()
	s.drained()
	found := s.check(nil)
	s.undisturbed()
	f.stop()
	if found.duplicates != 0 || found.records != n+1 {
		t.Errorf("%d duplicates at the topic, %d records of %d", found.duplicates, found.records, n+1)
	}
	figure(t, "6 COMMITs lost, 1 kill before a COMMIT; %v", found)
}

// SC30: backends are ended in mid batch, each time another role's, while its commit waits for a lock: the batch is made again
// and nothing else ends.
// Shows N7.
func TestSC30EndedBackends(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shape{1, 3})
	f := s.fleet()
	s.input(0)
	s.drained()
	n := 1
	for range 2 {
		for _, role := range roles() {
			l := s.hold(role)
			for range 5 {
				s.input(n)
				n++
			}
			pid := l.waiting()
			s.query("SELECT pg_terminate_backend(" + pid + ")")
			l.release()
			s.drained()
		}
	}
	for _, role := range roles() {
		if p := f.running[role]; p.Ended() {
			t.Errorf("%s ended\n%s", role, p.Stderr.Last(5))
		}
	}
	found := s.check(nil)
	s.undisturbed()
	f.stop()
	figure(t, "6 backends ended; %v", found)
}
