package drill

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"amends/internal/kafkatest"
	"amends/internal/pgtest"
)

// fleet is a process of each role, started again whenever it is killed.
type fleet struct {
	s       *space
	running map[string]*process
	lines   []string
	ended   map[int]int // codes of processes that ended by themselves
}

// roles are the roles in the order of the data.
func roles() []string { return []string{"source", "relay", "view"} }

func (s *space) fleet() *fleet {
	s.t.Helper()
	f := &fleet{s: s, running: map[string]*process{}, lines: roles(), ended: map[int]int{}}
	f.revive()
	return f
}

// revive starts what is not running. A process that ended by itself may have done so only with a code that says that a start
// is safe: 1, 10 or 12.
func (f *fleet) revive() {
	f.s.t.Helper()
	for _, role := range f.lines {
		p := f.running[role]
		if p != nil && !p.Ended() {
			continue
		}
		if p != nil && p.Cmd.ProcessState.Exited() {
			code := p.Cmd.ProcessState.ExitCode()
			if code != 1 && code != 10 && code != 12 {
				f.s.t.Fatalf("%s ended with code %d\n%s", p.Line, code, p.Stderr.Last(20))
			}
			f.ended[code]++
		}
		f.running[role] = f.s.role(role)
	}
}

// moves waits until a role has moved beyond a value, reviving what ends meanwhile.
func (f *fleet) moves(role string, beyond int64) time.Duration {
	f.s.t.Helper()
	return await(f.s.t, role+" goes on", func() bool {
		f.revive()
		return f.s.number(progress(role)) > beyond
	})
}

// kill ends a role by SIGKILL; the next revive starts it again. Where a busy machine has kept it for so long that it ended by itself a
// moment before, revive looks at its code.
func (f *fleet) kill(role string) {
	f.s.t.Helper()
	p := f.running[role]
	p.signal(syscall.SIGKILL)
	<-p.Done()
}

// stopOne ends a role by SIGTERM; the next revive starts it again.
func (f *fleet) stopOne(role string) time.Duration {
	f.s.t.Helper()
	p := f.running[role]
	delete(f.running, role)
	return p.stop()
}

// stop ends the fleet by SIGTERM.
func (f *fleet) stop() {
	f.s.t.Helper()
	f.revive()
	for _, role := range f.lines {
		f.running[role].stop()
	}
}

// killSome ends a random choice of roles at once, by SIGKILL at a random moment, and waits until each goes on.
func (f *fleet) killSome(rng *rand.Rand) (killed int) {
	f.s.t.Helper()
	time.Sleep(time.Duration(rng.IntN(700)) * time.Millisecond)
	before := map[string]int64{}
	for _, i := range rng.Perm(3)[:1+rng.IntN(3)] {
		role := roles()[i]
		f.kill(role)
		before[role] = f.s.number(progress(role))
	}
	f.revive()
	for role, at := range before {
		f.moves(role, at)
	}
	return len(before)
}

// Cycles of kill -9 of every role, alone and together, while records stream: nothing is lost, nothing doubled, not even at the
// topic, and the envelopes are those of an undisturbed run.
// Shows F1, F2, I1, I5, I7, I8, I9, I10, I15.
func TestKilledRoles(t *testing.T) {
	t.Parallel()
	cycles := max(1, size(t, cyclesEnv, 5, 2)*4/5)
	rng := choices(t)
	s := newSpace(t, shape{3, 3})
	f := s.fleet()
	st := s.stream(rng.Uint64(), 60)
	s.moves("the first records", shown, 0)
	kills := 0
	for range cycles {
		kills += f.killSome(rng)
	}
	st.stop()
	found := s.check(st)
	s.undisturbed()
	f.stop()
	if found.duplicates != 0 {
		t.Errorf("%d duplicates at the topic after ordinary crashes", found.duplicates)
	}
	if floor := cycles * 30; found.records < floor || kills < cycles {
		t.Errorf("%d kills and %d records, fewer than %d and %d", kills, found.records, cycles, floor)
	}
	figure(t, "%d cycles, %d processes killed; %v", cycles, kills, found)
}

// The same with the services: PostgreSQL's postmaster and the broker are killed and started again, and so are roles (SC30,
// SC31).
// Shows F5.
func TestSC30SC31KilledServices(t *testing.T) {
	t.Parallel()
	cycles := max(2, size(t, cyclesEnv, 10, 2)/5)
	rng := choices(t)
	kafka, database := kafkatest.Server(t), pgtest.Server(t)
	s := newSpaceOn(t, shape{2, 3}, kafka.Brokers(), database.New())
	f := s.fleet()
	st := s.stream(rng.Uint64(), 150)
	s.moves("the first records", shown, 0)
	var slowest [2][]time.Duration
	kills, roleKills := 0, 0
	for i := range cycles {
		time.Sleep(time.Duration(rng.IntN(600)) * time.Millisecond)
		victim := [...]interface {
			Kill()
			Start()
		}{database, kafka}[i%2]
		victim.Kill()
		kills++
		time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		if rng.IntN(2) == 0 { // a role dies while the service is away
			f.running[roles()[rng.IntN(3)]].signal(9)
			roleKills++
		}
		victim.Start()
		began := time.Now()
		at := s.number(shown)
		f.moves("view", at)
		slowest[i%2] = append(slowest[i%2], time.Since(began))
	}
	st.stop()
	f.revive()
	found := s.check(st)
	s.undisturbed()
	f.stop()
	figure(t, "%d kills of services, %d of roles meanwhile; processes that ended by themselves, by code: %v; %v", kills, roleKills, f.ended, found)
	figure(t, "new rows at the view after PostgreSQL is back: %s; after the broker is back: %s", spread(slowest[0]), spread(slowest[1]))
}

// Takeover by a standby with default settings after a kill -9: relay, view and worker (SC38). The times are measured.
func TestSC38Takeover(t *testing.T) {
	rng := choices(t)
	s := newSpace(t, shape{2, 3})
	pairs := map[string][2]*process{}
	for _, role := range roles() {
		first := s.role(role)
		s.moves(role+" takes its partitions", terms(role), 1)
		pairs[role] = [2]*process{first, s.role(role)}
	}
	st := s.stream(rng.Uint64(), 100)
	s.moves("the first records", shown, 0)
	took := map[string][]time.Duration{}
	for range min(size(t, killsEnv, 2, 1), 5) {
		for _, role := range roles() {
			pair := s.standing(role, pairs[role])
			if role == "source" {
				s.shared(pair[0], pair[1])
			}
			s.settled(role)
			term := s.number(terms(role))
			pair[0].Kill()
			began := time.Now()
			s.moves(role+": the standby installs itself", terms(role), term)
			s.everyPartitionMoves(role)
			took[role] = append(took[role], time.Since(began))
			pairs[role] = [2]*process{pair[1], s.role(role)}
		}
	}
	st.stop()
	found := s.check(st)
	for _, role := range roles() {
		aim := map[string]time.Duration{"source": 10 * time.Second, "relay": 5 * time.Second, "view": 5 * time.Second}[role]
		figure(t, "takeover of a killed %s: %s", role, within(took[role], aim))
	}
	figure(t, "%v", found)
	if found.duplicates != 0 {
		t.Errorf("%d duplicates at the topic", found.duplicates)
	}
	for _, role := range []string{"relay", "view"} {
		s.role(role, "-no-standby").ends(10, "another process runs this role")
	}
}

// standing replaces who of a pair has ended: a holder that stood still for longer than its lease lasts, as may be on a busy machine,
// was taken over from and ended with 10. Who took over is the holder then.
func (s *space) standing(role string, pair [2]*process) [2]*process {
	s.t.Helper()
	if pair[0].Ended() {
		pair[0].ends(10, "")
		pair = [2]*process{pair[1], s.role(role)}
	}
	return pair
}

// shared waits until both workers own partitions and no rebalance runs.
func (s *space) shared(one, other *process) {
	s.t.Helper()
	await(s.t, "two workers share the partitions", func() bool { return one.owns() && other.owns() })
	s.settled("source")
	await(s.t, "two workers share the partitions", func() bool { return one.owns() && other.owns() })
}

// settled waits until a role's ownership has not changed for a second: a member that joined is through.
func (s *space) settled(role string) {
	s.t.Helper()
	last, since := s.number(terms(role)), time.Now()
	await(s.t, role+" is settled", func() bool {
		if now := s.number(terms(role)); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > time.Second
	})
}

// everyPartitionMoves waits until a role has moved every partition forward.
func (s *space) everyPartitionMoves(role string) {
	s.t.Helper()
	column := map[string]string{"source": "frontier", "relay": "next_sequence", "view": "next_sequence"}[role]
	sql := fmt.Sprintf("SELECT %s FROM amends.%s WHERE namespace_id = $NS ORDER BY partition", column, positions(role))
	before := s.query(sql)
	await(s.t, role+" moves every partition", func() bool {
		for i, row := range s.query(sql) {
			if row[0] == before[i][0] {
				return false
			}
		}
		return true
	})
}
