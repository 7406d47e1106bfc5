package worker

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"amends/internal/kafkatest"
	"amends/internal/ledger"
	"amends/internal/pgtest"
	"amends/internal/store/postgres"
)

// onPostgres gives a stage a database of its own.
func (s *stage) onPostgres() (url string) {
	s.t.Helper()
	url = pgtest.New(s.t, pgtest.Fast)
	db, err := postgres.Open(s.ctx(), postgres.Options{URL: url, AllowFsyncOff: true})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(db.Close)
	if err := db.Migrate(s.ctx()); err != nil {
		s.t.Fatal(err)
	}
	ns, err := db.Init(s.ctx(), s.cfg, s.name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.store, s.reader = &faulty{Store: ns}, ns
	return url
}

// realStage is a stage on Apache Kafka and PostgreSQL.
func realStage(t *testing.T, n int32, openKeys bool) (s *stage, url string) {
	t.Helper()
	brokers := kafkatest.Brokers(t)
	s = newStageOn(t, brokers, kafkatest.Topic(t, brokers), n, openKeys)
	return s, s.onPostgres()
}

// SC01-SC03, SC25 (real): the worked example on PostgreSQL and Apache Kafka, a restart between its stages.
func TestRealSC25WorkedExampleWithRestarts(t *testing.T) {
	s, _ := realStage(t, 2, false)
	for _, stages := range [][]string{example[:3], example[3:4], example[4:]} {
		s.load(stages...)
		r := s.run(s.options(s.store))
		s.drained()
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
	got, state := outputs(t, s.reader, 0)
	mustBeExample(t, got)
	if state.Owned.Frontier != 5 || state.Owned.Sequence != 11 {
		t.Fatalf("%+v", state.Owned)
	}
}

// SC23 (real).
func TestRealSC23TransactionsInTheSource(t *testing.T) {
	s, _ := realStage(t, 1, false)
	s.load(example[0])
	s.transaction(false, example[1], example[1])
	s.transaction(true, example[1])
	s.transaction(false, example[2])
	r := s.run(s.options(s.store))
	s.drained()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	got, state := outputs(t, s.reader, 0)
	if d := cmp.Diff([]string{"0 0 balance 2026-01-01 v1 100", "1 0 status v1 READY", "2 4 balance 2026-01-02 v1 80"}, got); d != "" {
		t.Fatal(d)
	}
	if state.Owned.Frontier != 8 {
		t.Fatalf("frontier %d, want 8", state.Owned.Frontier)
	}
}

// SC22 and SC30 (real), without process kills: workers come and go and backends are ended while records stream.
func TestRealSC22SC30RebalancesAndEndedBackends(t *testing.T) {
	s, url := realStage(t, 4, true)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i += 60 {
			select {
			case <-stop:
				return
			default:
				s.load(history(i, 60)...)
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
	first := s.run(s.options(s.store))
	commits := func() int { return s.store.count(func() int { return len(s.store.commits) }) }
	for range 3 {
		second := s.joins("the second worker")
		s.endBackends(url)
		before := commits()
		await(t, "commits after backends were ended", func() bool { return commits() > before+8 })
		if err := second.stop(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	s.drained()
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	s.undisturbed()
}

// endBackends terminates the connections of the stage's own pool, as an operator or a failing server does.
func (s *stage) endBackends(url string) {
	s.t.Helper()
	c, err := pgx.Connect(s.ctx(), url)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close(s.ctx())
	if _, err := c.Exec(s.ctx(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"); err != nil {
		s.t.Fatal(err)
	}
}

func TestRealEvictionAndSnapshots(t *testing.T) {
	s := newStage(t, 1, true)
	s.onPostgres()
	o := s.options(s.store)
	o.CacheBytes = 1
	r := s.run(o)
	for i := range 12 {
		s.load(history(i*50, 50)...)
		s.drained()
	}
	many := make([]string, 0, 2*SnapshotRows)
	for i := range 2 * SnapshotRows {
		many = append(many, receipt("S-"+ledger.Day(i+1).String(), "deep", ledger.Day(int(day("2026-01-01"))+i%40).String(), 1))
	}
	s.load(many...)
	s.drained()
	s.load(receipt("S-last", "deep", "2026-01-01", 5))
	s.drained()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if s.store.saves == 0 {
		t.Fatal("no snapshot was saved")
	}
	s.undisturbed()
}
