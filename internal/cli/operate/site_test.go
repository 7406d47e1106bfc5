package operate_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"amends/internal/embedded"
	"amends/internal/embedded/process"
	"amends/internal/programtest"
)

// site is the web role of a process, as others see it.
type site struct {
	t       *testing.T
	address string
	token   string
	client  *http.Client
}

// newSite picks an address for a web role; nothing listens there yet.
func newSite(t *testing.T) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return &site{t: t, address: l.Addr().String(), client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// get asks for a path; the code is 0 where nobody answers.
func (s *site) get(path string) (code int, body string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.address+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	got, err := s.client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return got.StatusCode, string(b)
}

// await waits until a path answers with the code and holds the words.
func (s *site) await(path string, code int, words string) {
	s.t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		got, body := s.get(path)
		if got == code && strings.Contains(body, words) {
			return
		}
		if time.Since(began) > programtest.Deadline {
			s.t.Fatalf("%s: %d %q, want %d with %q", path, got, body, code, words)
		}
	}
}

// scrape returns the samples of one scrape, which must be answered with 200, by name and labels.
func (s *site) scrape() map[string]float64 {
	s.t.Helper()
	code, body := s.get("/metrics")
	if code != 200 {
		s.t.Fatalf("scrape: %d %s", code, body)
	}
	samples := map[string]float64{}
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "amends_") {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			s.t.Fatalf("%q: %v", line, err)
		}
		samples[name] = v
	}
	for _, word := range []string{"widget", "berlin", "gadget", "oslo", "T-1"} {
		if strings.Contains(body, word) {
			s.t.Errorf("a scrape names %s", word)
		}
	}
	return samples
}

// awaitSample waits until a sample has a value and returns its scrape.
func (s *site) awaitSample(name string, want float64) map[string]float64 {
	s.t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		got := s.scrape()
		if v, there := got[name]; there && v == want {
			return got
		}
		if time.Since(began) > programtest.Deadline {
			s.t.Fatalf("%s is not %v in\n%v", name, want, got)
		}
	}
}

const (
	blockAge   = `amends_oldest_block_age_seconds{namespace="demo"}`
	blocked0   = `amends_blocked_keys{namespace="demo",partition="0"}`
	databaseUp = `amends_database_up{namespace="demo"}`
	brokerUp   = `amends_broker_up{namespace="demo"}`
	frontier0  = `amends_source_frontier{namespace="demo",partition="0"}`
	end0       = `amends_source_end{namespace="demo",partition="0"}`
)

// C5: a conflict blocks a key and is left alone. The metrics count it and say for how long, and that grows; once a record resolves
// it the count is 0 and there is no age. Everything else is counted beside it.
func TestC5MetricsOfAKeyLeftBlocked(t *testing.T) {
	t.Parallel()
	x, web := newSpace(t), newSite(t)
	x.run("source,relay,view,web -listen " + web.address)
	web.await("/readyz", 200, "ready")
	x.load(worked...)
	got := web.awaitSample(frontier0, 5)
	if age, there := got[blockAge]; there || got[blocked0] != 0 {
		t.Errorf("nothing is blocked: %v keys, age %v", got[blocked0], age)
	}
	x.load(active("T-1", 2, "2026-01-01", "receipt", 71)) // r2 is a receipt of 70 already
	x.publish(sourceTopic, 1, "no key", "no value")
	first := web.awaitSample(blocked0, 1)
	age, there := first[blockAge]
	if !there || age < 0 || age > 60 {
		t.Errorf("blocked for %v (%v)", age, there)
	}
	time.Sleep(1100 * time.Millisecond)
	later := web.awaitSample(`amends_rejected_records_total{namespace="demo",partition="1"}`, 1)
	if grown := later[blockAge] - age; grown < 1 || grown > 60 || later[blocked0] != 1 {
		t.Errorf("after a second: %v keys, %v older", later[blocked0], grown)
	}
	since := x.eventually(4, "BLOCKED  1 key blocked", "status").Stdout
	if !strings.Contains(since, "0/5 T-1 r2") {
		t.Errorf("status names another cause: %s", since)
	}
	for name, want := range map[string]float64{
		`amends_blocked_keys{namespace="demo",partition="1"}`:            0,
		`amends_rejected_records_total{namespace="demo",partition="0"}`:  0,
		`amends_committed_records_total{namespace="demo",partition="0"}`: 6,
		`amends_committed_records_total{namespace="demo",partition="1"}`: 1,
		`amends_output_versions_total{namespace="demo",partition="0"}`:   12, // the worked example's eleven and the status
		`amends_withdrawals_total{namespace="demo",partition="0"}`:       2,
		`amends_partition_stopped{namespace="demo",partition="0"}`:       0,
		`amends_protocol_errors_total{namespace="demo",partition="1"}`:   0,
		`amends_source_lag_records{namespace="demo",partition="0"}`:      0,
		`amends_source_lag_seconds{namespace="demo",partition="0"}`:      0,
		frontier0: 6, end0: 6, databaseUp: 1, brokerUp: 1,
	} {
		if v, there := later[name]; !there || v != want {
			t.Errorf("%s is %v (%v), want %v", name, v, there, want)
		}
	}
	x.load(active("T-1", 3, "2026-01-01", "receipt", 70))
	got = web.awaitSample(blocked0, 0)
	if age, there := got[blockAge]; there {
		t.Errorf("resolved, and %v old", age)
	}
	for name := range got {
		if strings.HasPrefix(name, "amends_verif") {
			t.Errorf("%s before any verification", name)
		}
	}
	x.want(0, "", "verify")
	got = web.scrape()
	if got[`amends_verification_status{namespace="demo",status="PASS"}`] != 1 || got[`amends_verification_status{namespace="demo",status="DRIFT"}`] != 0 {
		t.Errorf("%v", got)
	}
	if age, there := got[`amends_verified_age_seconds{namespace="demo"}`]; !there || age < 0 || age > 60 {
		t.Errorf("verified %v (%v) ago", age, there)
	}
	x.publish(outputTopic, 1, "k", "no envelope")
	got = web.awaitSample(`amends_partition_stopped{namespace="demo",partition="1"}`, 1)
	if got[`amends_protocol_errors_total{namespace="demo",partition="1"}`] != 1 {
		t.Errorf("%v", got)
	}
}

// The site answers before the database is there and while it is away: with 200, saying so, and with nothing old; readiness follows,
// of the role alone and of one beside it.
func TestSiteWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	for _, roles := range []string{"web", "source,relay,view,web"} {
		t.Run(roles, func(t *testing.T) {
			t.Parallel()
			x, web := newSpace(t), newSite(t)
			way := x.wayToDatabase()
			way.shut()
			stop := x.run(roles + " -listen " + web.address)
			web.await("/livez", 200, "alive")
			web.await("/readyz", 503, "starting")
			if got := web.scrape(); got[databaseUp] != 0 || len(got) != 2 {
				t.Errorf("before the start: %v", got)
			}
			way.open()
			web.await("/readyz", 200, "ready")
			if got := web.awaitSample(databaseUp, 1); got[brokerUp] != 1 || len(got) < 20 {
				t.Errorf("started: %v", got)
			}
			way.shut()
			got := web.awaitSample(databaseUp, 0)
			if got[brokerUp] != 1 || len(got) != 3 {
				t.Errorf("with the database away: %v", slices.Sorted(maps.Keys(got)))
			}
			web.await("/livez", 200, "alive")
			web.await("/readyz", 503, "database: ")
			way.open()
			web.await("/readyz", 200, "ready")
			web.awaitSample(databaseUp, 1)
			stop()
			if code, _ := web.get("/livez"); code != 0 {
				t.Errorf("the role has ended and answers: %d", code)
			}
		})
	}
}

// Readiness follows the roles beside it: the worker waits for its group at the start and for its broker later, and so do the others.
func TestSiteWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	port, err := process.KernelPort() // none that an embedded broker of another test would take
	if err != nil {
		t.Fatal(err)
	}
	var b *embedded.Broker
	start := func() {
		programtest.Await(t, "the broker is up", func() bool {
			var taken *process.PortError
			b, err = embedded.StartBroker(t.Context(), embedded.BrokerOptions{Dir: dir, Port: port})
			if err != nil && !errors.As(err, &taken) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	start()
	t.Cleanup(func() { _ = b.Stop() })
	address := b.Address()
	x, web := spaceOn(t, []string{address}), newSite(t)
	x.run("source,relay,view,web -listen " + web.address)
	web.await("/readyz", 200, "ready")
	x.load(worked...)
	web.awaitSample(end0, 5)
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"source topic: ", "\nsource: broker: ", "\nrelay: ", "\nview: "} {
		web.await("/readyz", 503, words)
	}
	got := web.awaitSample(brokerUp, 0)
	if _, there := got[end0]; there || got[databaseUp] != 1 || got[frontier0] != 5 {
		t.Errorf("with the broker away: %v", got)
	}
	if _, there := got[`amends_source_lag_records{namespace="demo",partition="0"}`]; there {
		t.Error("a lag that nobody knows")
	}
	start()
	web.await("/readyz", 200, "ready")
	web.awaitSample(end0, 5)
}

func TestSiteNeedsATokenBeyondLoopback(t *testing.T) {
	t.Parallel()
	x, web := newSpace(t), newSite(t)
	_, port, err := net.SplitHostPort(web.address)
	if err != nil {
		t.Fatal(err)
	}
	x.want(2, "-listen 0.0.0.0:"+port+": no usable token: 0.0.0.0:"+port+" is reached from elsewhere; export AMENDS_HTTP_TOKEN or AMENDS_HTTP_TOKEN_FILE", "run -role web -listen 0.0.0.0:"+port)
	x.want(2, "-listen nowhere: ", "run -role web -listen nowhere")
	x.Env["AMENDS_HTTP_TOKEN_FILE"] = x.Write("token", "correct-horse\n")
	stop := x.run("web -listen 0.0.0.0:" + port)
	web.await("/livez", 200, "alive")
	for _, token := range []string{"", "correct-hors"} {
		web.token = token
		for _, path := range []string{"/metrics", "/readyz", "/version"} {
			if code, body := web.get(path); code != 401 || strings.Contains(body, "amends_") {
				t.Errorf("%s with %q: %d %s", path, token, code, body)
			}
		}
	}
	web.token = "correct-horse"
	web.await("/readyz", 200, "ready")
	web.awaitSample(databaseUp, 1)
	if code, body := web.get("/version"); code != 200 || !strings.Contains(body, `"schema":1,"version":`) {
		t.Errorf("%d %s", code, body)
	}
	// The port is in use: another process of the role says so and ends.
	delete(x.Env, "AMENDS_HTTP_TOKEN_FILE")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	x.want(1, "listen on "+taken.Addr().String()+": another process has this port; end it, or take another with -listen", fmt.Sprintf("run -role web,source -listen %s", taken.Addr()))
	stop()
}

// Alone the role only reads: a login that may read is enough, and nothing is written.
func TestSiteAloneOnlyReads(t *testing.T) {
	t.Parallel()
	x, web := newSpace(t), newSite(t)
	role := "site_" + x.suffix()
	u, err := url.Parse(x.Env["AMENDS_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	x.sql("CREATE ROLE " + role + " LOGIN PASSWORD 'p'; GRANT USAGE ON SCHEMA amends TO " + role + "; GRANT SELECT ON ALL TABLES IN SCHEMA amends TO " + role)
	defer x.sql("DROP OWNED BY " + role + "; DROP ROLE " + role)
	owner := x.Env["AMENDS_DATABASE_URL"]
	u.User = url.UserPassword(role, "p")
	x.Env["AMENDS_DATABASE_URL"] = u.String()
	stop := x.run("web -listen " + web.address)
	x.Env["AMENDS_DATABASE_URL"] = owner
	web.await("/readyz", 200, "ready")
	if got := web.awaitSample(databaseUp, 1); got[blocked0] != 0 || len(got) < 20 {
		t.Errorf("%v", got)
	}
	stop()
}

// way leads connections to the database while it is open.
type way struct {
	t       *testing.T
	to      string
	at      string
	mu      sync.Mutex
	wg      sync.WaitGroup
	l       net.Listener
	through []net.Conn
	closed  bool
}

// wayToDatabase puts a way between the commands of x and the database, and opens it.
func (x *space) wayToDatabase() *way {
	x.t.Helper()
	u, err := url.Parse(x.Env["AMENDS_DATABASE_URL"])
	if err != nil {
		x.t.Fatal(err)
	}
	w := &way{t: x.t, to: u.Host, at: "127.0.0.1:0"}
	w.open()
	u.Host = w.at
	x.Env["AMENDS_DATABASE_URL"] = u.String()
	x.t.Cleanup(w.shut)
	return w
}

func (w *way) open() {
	w.t.Helper()
	var l net.Listener
	programtest.Await(w.t, "the way's address is free", func() bool { // while it was shut another process may have had its port
		var err error
		if l, err = net.Listen("tcp", w.at); err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			w.t.Fatal(err)
		}
		return err == nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.l, w.at, w.closed = l, l.Addr().String(), false
	w.wg.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", w.to)
			if err != nil {
				from.Close()
				continue
			}
			w.mu.Lock()
			w.through = append(w.through, from, to)
			if w.closed { // it came while the way was shut
				from.Close()
				to.Close()
			}
			w.mu.Unlock()
			for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
				w.wg.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					pair[0].Close()
				})
			}
		}
	})
}

// shut refuses connections and cuts those that there are.
func (w *way) shut() {
	w.mu.Lock()
	w.closed = true
	w.l.Close()
	for _, c := range w.through {
		c.Close()
	}
	w.through = nil
	w.mu.Unlock()
	w.wg.Wait()
}
