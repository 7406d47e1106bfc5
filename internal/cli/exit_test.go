package cli_test

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/fixtures"
	"amends/internal/broker"
	"amends/internal/faultwire"
	"amends/internal/kafkatest"
	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
	"amends/internal/store/postgres"
)

func TestUsageSaysWhatToTry(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	s.Write("nothing.json", "\n")
	manifest := s.Write("good.json", strings.Replace(unboundManifest, "SOURCE", "s", 1))
	for line, cause := range map[string]string{
		"amends sorce":             "did you mean: amends source?",
		"amends xyzzy":             "try: amends -help",
		"amends source":            "try: amends source create, amends source load",
		"amends source crate":      "try: amends source create",
		"amendsctl source-crate":   "did you mean: amendsctl source-create?",
		"amends verify extra":      "takes no argument",
		"amends verify -timeot 1s": "did you mean -timeout?",
		"amends verify -zzz":       "try: amends verify -help",
		"amends verify -timeout x": "invalid argument",
		"amends verify -timeout 0s -manifest " + manifest:       "more than 0",
		"amends verify -o yaml":                                 "text or json",
		"amends verify":                                         "no manifest",
		"amends verify -manifest @none.json":                    "no such file",
		"amends run -role nobody":                               `unknown role "nobody"`,
		"amends run -workers 0":                                 "1 or more",
		"amends verify -brokers '' -manifest " + manifest:       "no address",
		"amends verify -brokers a:b -manifest " + manifest:      "not host:port",
		"amends source create -namespace n -topic 'a b'":        "not a topic name",
		"amends demo -broker-port 99999":                        "-broker-port 99999: not a port",
		"amends dev -postgres-port -1":                          "-postgres-port -1: not a port",
		"amends source create -topic t":                         "-namespace and -topic",
		"amends source create -namespace NO -topic t":           "namespace",
		"amends source create -namespace n -topic t -config @x": "no such file",
		"amends output create -manifest " + manifest:            "-topic",
		"amends source load -format csv -file x":                "jsonl or raw",
		"amends view show -manifest " + manifest:                "AMENDS_DATABASE_URL is not set",
		"amends run -role source -manifest " + manifest:         "AMENDS_DATABASE_URL",
		"amends -role source -manifest " + manifest:             "AMENDS_DATABASE_URL",
		"amends migrate up":                                     "AMENDS_DATABASE_URL",
		"amends generate -law nope":                             "one of mixed",
		"amends generate -conflicts 3 -law short":               "mixed",
		"amends generate -keys 1000001":                         "-keys is 0..1000000",
		"amends demo crush":                                     "unknown scenario",
		"amends demo -file x":                                   "retail",

		"amends completion":        "amends completion needs a command; try: amends completion bash, ",
		"amends completion tcsh":   `unknown command "amends completion tcsh"; try: amends completion bash, `,
		"amends help source foo":   `unknown command "foo"; try: amends source -help`,
		"amends --version":         "unknown flag -version; did you mean: amends version?",
		"amends sim -replay /none": "-replay: read schedule: open /none: no such file",
		"amends sim -threads -1":   "-threads and the floors are 0 or more",

		"amends verify -manifest @nothing.json": "nothing.json is empty; print it again",
	} {
		s.Want(2, cause, line)
	}
}

const unboundManifest = `{"source_topic":"SOURCE","config":{"schema_version":1,"namespace":"demo","source_incarnation":"kafka:00112233445566778899aabbccddeeff",
	"ledger_origin":"2026-01-01","partitions":2,"quantity_scale":0,"stock_keys":[]}}`

func TestHelpBeginsWithExamples(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	for _, line := range []string{"amends", "amends -help", "amends source load -h", "amendsctl verify --help", "amends demo -help", "amends help run"} {
		a := s.Want(0, "", line)
		if !strings.HasPrefix(a.Stdout, "Examples:\n  "+strings.Fields(line)[0]) || a.Stderr != "" {
			t.Errorf("%s printed %q %q", line, a.Stdout, a.Stderr)
		}
	}
	if a := s.Want(0, "", "amendsctl source-load -help"); !strings.Contains(a.Stdout, "amendsctl source-load -manifest") {
		t.Errorf("flat examples: %s", a.Stdout)
	}
	if a := s.Want(0, "", "amends completion bash"); !strings.Contains(a.Stdout, "complete") {
		t.Error("no completion")
	}
	a := s.Want(0, "", "amends version -o json")
	var v map[string]any
	if json.Unmarshal([]byte(a.Stdout), &v) != nil || v["schema"] != 1.0 {
		t.Errorf("version: %s", a.Stdout)
	}
}

func TestGenerateIsSeeded(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"AMENDS_RECORDS": "5"})
	a, b := s.Want(0, "", "amends generate -seed 3"), s.Want(0, "", "amends generate -seed 3")
	if a.Stdout != b.Stdout || strings.Count(a.Stdout, "\n") != 5 {
		t.Errorf("%q, %q", a.Stdout, b.Stdout)
	}
	if c := s.Want(0, "", "amends generate -seed 4 -records 6"); strings.Count(c.Stdout, "\n") != 6 || strings.HasPrefix(c.Stdout, a.Stdout) {
		t.Errorf("flags over environment: %q", c.Stdout)
	}
}

func TestAnAddressThatIsNoneIsAWrongCommand(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"AMENDS_DATABASE_URL": "localhost"})
	s.Want(2, "AMENDS_DATABASE_URL: open database: not postgres://", "amends migrate status")
}

// A second request aborts what the first one waits for: code 1 and a last line that says so. The transaction that was in hand stays
// open at the server; the next start ends it and goes on.
// Shows F17.
func TestASecondSignalAborts(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	direct := x.Env["AMENDS_DATABASE_URL"]
	proxy := faultwire.New(t, direct)
	held := proxy.Arm(faultwire.Hold, 0, faultwire.CommitOf("advance"))
	x.Env["AMENDS_DATABASE_URL"] = proxy.URL()
	p := x.Start("amends -role source -manifest @pipeline.json")
	x.Env["AMENDS_DATABASE_URL"] = direct
	x.Want(0, "published", "amends source load -manifest @pipeline.json -file "+programtest.Fixture(t, "before.jsonl"))
	programtest.Await(t, "a COMMIT in hand", held.Done)
	for began := time.Now(); !p.Ended(); time.Sleep(100 * time.Millisecond) { // the second of one request is none: see below
		if time.Since(began) > programtest.Deadline {
			t.Fatalf("it does not end: %s", p.Stderr)
		}
		_ = p.Cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	p.Ends(1, "aborted by a second terminated; starting again is safe")
	if !strings.Contains(p.Stderr.String(), "draining; a second one aborts") {
		t.Errorf("the first request: %s", p.Stderr)
	}
	again := x.Start("amends run -manifest @pipeline.json")
	if v := verifyJSON(t, x.run("amends verify -manifest @pipeline.json -deep -o json")); v.Status != "PASS" || v.SourceRecords != 3 || v.Messages != 5 {
		t.Errorf("%+v", v)
	}
	again.Stop(stopsWithin)
}

// One request may arrive as two signals: timeout(1) sends it to the process and to its group.
// Shows F17.
func TestTwoSignalsAtOnceAreOneRequest(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"AMENDS_DATABASE_URL": "postgres://amends@127.0.0.1:1/none", "AMENDS_BROKERS": "127.0.0.1:1"})
	p := s.Start("amends run -role source -manifest " + s.Write("good.json", strings.Replace(unboundManifest, "SOURCE", "s", 1)))
	for began := time.Now(); !strings.Contains(p.Stderr.String(), "waiting for"); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > programtest.Deadline {
			t.Fatalf("it does not wait: %s", p.Stderr.String())
		}
	}
	began := time.Now()
	for range 2 {
		if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
			break // it ended already
		}
		time.Sleep(time.Millisecond)
	}
	apart := time.Since(began)
	a := p.Wait()
	if apart > 200*time.Millisecond && a.Is(1, "aborted by a second terminated") {
		return // this machine stood still between the two: they were not at once
	}
	if a.Code != 0 || strings.Contains(a.Stderr, "aborted") {
		t.Errorf("%d: %s", a.Code, a.Stderr)
	}
}

// space is a bound namespace for refusals, on an in-process broker and a real database.
type space struct {
	*shell
	brokers        []string
	source, output string
	admin          *kadm.Client
}

func newSpace(t *testing.T) *space {
	t.Helper()
	x := &space{brokers: kafkatest.Embedded(t), source: "amends-test-source", output: "amends-test-output"}
	x.shell = newShell(t, map[string]string{"AMENDS_DATABASE_URL": pgtest.New(t), "AMENDS_BROKERS": strings.Join(x.brokers, ",")})
	client, err := kgo.NewClient(kgo.SeedBrokers(x.brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	x.admin = kadm.NewClient(client)
	a := x.Want(0, "", "amends source create -namespace demo -topic "+x.source)
	x.Write("source.json", a.Stdout)
	a = x.Want(0, "", "amends output create -manifest @source.json -topic "+x.output)
	x.Write("pipeline.json", a.Stdout)
	return x
}

// role runs a role that must end by itself.
func (x *space) role(code int, cause, line string) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), programtest.Deadline)
	defer cancel()
	a := x.Call(ctx, line)
	if a.Code != code || !strings.Contains(a.Cause(), cause) || ctx.Err() != nil {
		x.t.Errorf("%s: code %d, want %d with %q; stderr:\n%s", line, a.Code, code, cause, a.Stderr)
	}
}

func TestSC29RefusedStarts(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	pipeline := x.Call(t.Context(), "amends output create -manifest @source.json -topic "+x.output).Stdout
	x.Write("threshold.json", strings.Replace(pipeline, `"threshold": 60`, `"threshold": 61`, 1))
	x.Write("unknown.json", strings.Replace(pipeline, `"namespace"`, `"name_space"`, 1))
	other := strings.Replace(pipeline, `"topic": "amends-test-output"`, `"topic": "amends-test-outpud"`, 1)
	x.Write("binding.json", other)
	x.Write("nowhere.json", strings.Replace(pipeline, `"namespace": "demo"`, `"namespace": "nowhere"`, 1))
	for _, role := range []string{"source", "relay", "view"} {
		x.role(13, "threshold", "amends -role "+role+" -manifest @threshold.json")
		x.role(2, "name_space", "amends -role "+role+" -manifest @unknown.json")
	}
	x.role(11, "no such topic", "amends -role relay -manifest @binding.json")
	x.Want(13, "threshold", "amends view show -manifest @threshold.json")
	x.Want(6, "UNAVAILABLE  CONFIGURATION", "amends verify -manifest @threshold.json")
	x.Want(13, "binding", "amends view show -manifest @binding.json")
	x.Want(13, "binding", "amends verify -manifest @binding.json")
	x.Want(13, "binding", "amends source load -manifest @binding.json -file "+programtest.Fixture(t, "before.jsonl"))
	x.Want(13, "no such namespace", "amends verify -manifest @nowhere.json")
	x.Want(13, "no such namespace", "amends view show -manifest @nowhere.json")
	x.Want(13, "binding", "amends output create -manifest @source.json -topic elsewhere")
	x.Want(2, "must not be the source", "amends output create -manifest @source.json -topic "+x.source)
	x.Want(1, "never adopted", "amends source create -namespace demo -topic "+x.source)
}

func TestEmptyDatabaseIsRefusedAndStaysEmpty(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.Env["AMENDS_DATABASE_URL"] = pgtest.New(t)
	for _, line := range []string{"amends view show -manifest @pipeline.json", "amends verify -manifest @pipeline.json"} {
		x.Want(13, "no amends schema; output create, source load or a role makes it", line)
	}
	if a := x.Want(0, "", "amends migrate status"); !strings.Contains(a.Stdout, "missing") || strings.Contains(a.Stdout, "applied") {
		t.Errorf("migrate status: %s", a.Stdout)
	}
	for _, first := range []bool{true, false} {
		if a := x.Want(0, "", "amends migrate up"); !strings.HasPrefix(a.First(), "up to date: version ") || strings.HasSuffix(a.First(), "; 0 migrations applied") == first {
			t.Errorf("migrate up: %s", a.Stdout)
		}
	}
	a := x.Want(0, "", "amends migrate status -o json")
	var m struct {
		Migrations []struct {
			State string `json:"state"`
		} `json:"migrations"`
	}
	if err := json.Unmarshal([]byte(a.Stdout), &m); err != nil || len(m.Migrations) == 0 || m.Migrations[0].State != "applied" {
		t.Errorf("%v: %s", err, a.Stdout)
	}
	x.Want(13, "no such namespace in this database; output create, source load or a role makes it", "amends view show -manifest @pipeline.json")
}

func TestSC24TopicsThatAreNotTheNamespaces(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do    func(x *space) error
		role  string
		cause string
	}{
		"recreated": {role: "source", cause: "incarnation", do: func(x *space) error {
			_, err := x.admin.DeleteTopic(t.Context(), x.source)
			if err == nil {
				x.Want(0, "", "amends source create -namespace demo -topic "+x.source)
			}
			return err
		}},
		"deleted": {role: "view", cause: "no such topic", do: func(x *space) error {
			_, err := x.admin.DeleteTopic(t.Context(), x.output)
			return err
		}},
		"finite retention": {role: "relay", cause: "retention.ms", do: func(x *space) error {
			v := "1000000000"
			_, err := x.admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &v}}, x.output)
			return err
		}},
		"compacted": {role: "source", cause: "cleanup.policy", do: func(x *space) error {
			v := "compact"
			_, err := x.admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: &v}}, x.source)
			return err
		}},
		"partitions added": {role: "source", cause: "partitions", do: func(x *space) error {
			_, err := x.admin.CreatePartitions(t.Context(), 1, x.source)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newSpace(t)
			if err := c.do(x); err != nil {
				t.Fatal(err)
			}
			x.role(11, c.cause, "amends -role "+c.role+" -manifest @pipeline.json")
			x.Want(6, "UNAVAILABLE", "amends verify -manifest @pipeline.json")
			if c.role == "source" {
				x.Want(11, c.cause, "amends source load -manifest @source.json -file "+programtest.Fixture(t, "before.jsonl"))
			}
		})
	}
}

func TestBadSourceFile(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	bad := x.Write("bad.jsonl", `{"schema":1,"txn_id":"T-1","revision":1,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":100}`+"\n"+
		`{"schema":1,"txn_id":"T-2","revision":1,"state":"active","item":"gadget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":1}`+"\n{}\n")
	a := x.Want(2, "line 2 column 1: UNKNOWN_KEY", "amends source load -manifest @source.json -file "+bad)
	if a.Stdout != "" || !strings.Contains(a.Stderr, "line 3 column 3: MALFORMED: schema is missing") {
		t.Errorf("%q\n%s", a.Stdout, a.Stderr)
	}
	admin, err := broker.Open(broker.Options{Brokers: x.brokers})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if ends, err := admin.Ends(t.Context(), x.source); err != nil || ends[0] != 0 || ends[1] != 0 {
		t.Errorf("something was published: %v %v", ends, err)
	}
	x.Want(2, "no such file", "amends source load -manifest @source.json -file @none")
	a = x.Want(0, "published 3 records", "amends source load -manifest @source.json -o json -file "+programtest.Fixture(t, "before.jsonl"))
	if want := `{"partition":0,"offset":0,"txn_id":"T-1","revision":1}` + "\n"; !strings.HasPrefix(a.Stdout, want) {
		t.Errorf("%s", a.Stdout)
	}
}

func TestBusyGuardAndIncomplete(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	db, err := postgres.Open(t.Context(), postgres.Options{URL: x.Env["AMENDS_DATABASE_URL"], AllowFsyncOff: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var m struct {
		Config struct {
			Incarnation string `json:"source_incarnation"`
		} `json:"config"`
	}
	text := x.Call(t.Context(), "amends output create -manifest @source.json -topic "+x.output).Stdout
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	g, err := db.GuardSource(t.Context(), m.Config.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	load := "amends source load -manifest @pipeline.json -file " + programtest.Fixture(t, "before.jsonl")
	x.Want(1, x.source+" is busy: another load, an import or a quiesced verification of it runs; run this again", load)
	// The budget is for opening the database too, which a busy machine may need a second for.
	x.Want(3, "LOAD_RUNNING", "amends verify -manifest @pipeline.json -timeout 4s")
	if err := g.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.Want(0, "", load)
	x.Want(3, "SOURCE_NOT_PROCESSED partition 0 offset 0", "amends verify -manifest @pipeline.json -timeout 4s")
	x.Want(0, "", "amends verify -manifest @pipeline.json -live")
}

func TestSC38NoStandbyEndsWithFenced(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	first := x.Start("amends run -manifest @pipeline.json -role relay,view")
	programtest.Await(t, "all leases are taken", func() bool { return strings.Count(first.Stderr.String(), "partition taken") == 4 })
	x.role(10, "another process runs this role", "amends run -manifest @pipeline.json -role view -no-standby")
	x.role(10, "another process runs this role", "amends run -manifest @pipeline.json -role relay -no-standby")
	first.Stop(stopsWithin)
}

func TestServicesAway(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	const nowhere = "127.0.0.1:1" // no port that the kernel would give to another test
	const soon = 15 * time.Second // a command that did not heed its flag would wait 20 s, a role without end
	began := time.Now()
	x.role(1, "broker unavailable", "amends -role source -manifest @pipeline.json -max-wait 3s -brokers "+nowhere) // time for the database, which is there
	if d := time.Since(began); d > soon {
		t.Errorf("giving up took %v", d)
	}
	file := x.Write("before.jsonl", fixtures.Before)
	for _, line := range []string{"source create -namespace late -topic late", "output create -manifest " + x.Path("pipeline.json") + " -topic late",
		"source load -manifest " + x.Path("pipeline.json") + " -file " + file} { // commands wait too, 20 s at most (S12)
		p := x.Start("amends " + line + " -brokers " + nowhere)
		programtest.Await(t, line+" waits for the broker", func() bool { return strings.Contains(p.Stderr.String(), "waiting for the broker: ") })
		if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if a := p.Wait(); a.Code != 1 || !strings.Contains(a.Cause(), "broker unavailable") {
			t.Errorf("%s: code %d\n%s", line, a.Code, a.Stderr)
		}
	}
	u, err := url.Parse(x.Env["AMENDS_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	password := "planted-secret"
	u.Host, u.User = nowhere, url.UserPassword("someone", password)
	x.Env["AMENDS_DATABASE_URL"] = u.String()
	for _, line := range []string{"amends -role source -manifest @pipeline.json -max-wait 300ms", "amends verify -manifest @pipeline.json -timeout 300ms"} {
		began := time.Now()
		a := x.Call(t.Context(), line)
		if a.Code != 1 || !strings.Contains(a.Cause(), "database unavailable") || strings.Contains(a.Stderr+a.Stdout, password) {
			t.Errorf("%s: code %d\n%s", line, a.Code, a.Stderr)
		}
		if d := time.Since(began); d > soon {
			t.Errorf("%s: giving up took %v", line, d)
		}
	}
}

func TestVerifyRecordsItsRun(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.Want(0, "", "amends verify -manifest @pipeline.json")
	db, err := postgres.Open(t.Context(), postgres.Options{URL: x.Env["AMENDS_DATABASE_URL"], AllowFsyncOff: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	raw, err := os.ReadFile(x.Path("pipeline.json"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := db.Namespace(t.Context(), m.Config)
	if err != nil {
		t.Fatal(err)
	}
	v, err := ns.LastVerification(t.Context())
	if err != nil || v == nil || v.Status != "PASS" || !v.Quiesced || v.Deep || len(v.Boundary) != 2 {
		t.Errorf("%+v %v", v, err)
	}
}
