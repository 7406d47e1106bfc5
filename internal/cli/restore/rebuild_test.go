package restore_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"amends/internal/broker"
	"amends/internal/programtest"
	"amends/internal/store/postgres"
)

const rebuild = "rebuild -manifest @pipeline.json -namespace shop2 -topic shop2-output -manifest-out @rebuilt.json"

// SC27: a dry rebuild changes nothing; an executed one gives a view equal to the old one by output and value, and leaves
// the old namespace and its output as they were.
func TestSC27RebuildEqualsTheOldView(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	before := w.dump("")
	a := w.want(0, "", rebuild)
	begins := regexp.MustCompile("^DRY RUN  rebuild of shop into shop2, output topic shop2-output, begins: 5 source offsets to read, 11 messages to publish; about (a second|[0-9]+ s); nothing was changed")
	if !begins.MatchString(a.Stdout) { // how long is estimated by how fast this machine is just now
		t.Error(a.Stdout)
	}
	if d := cmp.Diff(before, w.dump("")); d != "" {
		t.Fatalf("a dry rebuild changed (-before +after):\n%s", d)
	}
	if _, err := w.admin.Topic(t.Context(), "shop2-output"); err == nil {
		t.Fatal("a dry rebuild made the topic")
	}
	if _, err := os.Stat(w.Path("rebuilt.json")); err == nil {
		t.Fatal("a dry rebuild wrote the manifest")
	}
	origin, ends := w.dump("shop"), w.ends("shop-output")
	a = w.want(0, "", rebuild+" -execute")
	if !strings.HasPrefix(a.Stdout, "REBUILT  shop2 from shop: verify PASS  5 source records, 11 messages;") {
		t.Error(a.Stdout)
	}
	w.equal(4, origin, ends)
	if a := w.want(0, "", rebuild+" -execute"); !strings.HasPrefix(a.Stdout, "DONE  shop2 was rebuilt before, verify PASS; finished ") || strings.Contains(a.Stderr, "goes on") {
		t.Error(a.Stdout, a.Stderr)
	}
	if a := w.want(0, "", rebuild); !strings.HasPrefix(a.Stdout, "DRY RUN  rebuild of shop into shop2, output topic shop2-output, is done, verify PASS; finished ") ||
		!strings.HasSuffix(a.Stdout, "Z; nothing is left to do\n") {
		t.Error(a.Stdout)
	}
	recorded := w.read(`SELECT concat_ws(' ', v.status, keys, outputs, differences, quiesced, deep) FROM amends.verifications AS v JOIN amends.rebuilds USING (namespace_id)`)
	if recorded != "PASS 1 6 0 t t" { // of one key the four outputs and two withdrawn ones
		t.Errorf("the verification is recorded as %s", recorded)
	}
	w.want(0, "", "verify -manifest @rebuilt.json -deep -live")
}

func (w *world) ends(topic string) []int64 {
	w.t.Helper()
	ends, err := w.admin.Ends(w.t.Context(), topic)
	if err != nil {
		w.t.Fatal(err)
	}
	out := make([]int64, len(ends))
	for i, e := range ends {
		out[i] = int64(e)
	}
	return out
}

// equal checks a finished rebuild: both views hold that many outputs (tombstones aside) with equal values, row by row as SQL
// reads them, and the old namespace is as it was.
func (w *world) equal(outputs int, origin map[string][]string, ends []int64) {
	w.t.Helper()
	rows := func(namespace string) string {
		return w.read(`SELECT coalesce(string_agg(x::text, E'\n'), '') FROM (SELECT k.item, k.location, v.day, v.kind, v.present, v.close, v.previous, v.threshold, v.status
			FROM amends.view_rows AS v JOIN amends.view_keys AS k USING (namespace_id, partition, key_id) JOIN amends.namespaces AS n USING (namespace_id)
			WHERE n.namespace = '` + namespace + `' ORDER BY k.item, k.location, v.day, v.kind) AS x`)
	}
	if d := cmp.Diff(rows("shop"), rows("shop2")); d != "" {
		w.t.Errorf("view rows (-shop +shop2):\n%s", d)
	}
	a := w.want(0, "", "compare -manifest @pipeline.json -with @rebuilt.json -o json")
	var c struct {
		Result   string `json:"result"`
		Equal    int    `json:"equal"`
		SameCuts bool   `json:"same_cuts"`
	}
	if err := json.Unmarshal([]byte(a.Stdout), &c); err != nil || c.Result != "EQUAL" || c.Equal != outputs || !c.SameCuts {
		w.t.Errorf("%v: want %d equal outputs: %s", err, outputs, a.Stdout)
	}
	if d := cmp.Diff(origin, w.dump("shop")); d != "" {
		w.t.Errorf("the old namespace (-before +after):\n%s", d)
	}
	if d := cmp.Diff(ends, w.ends("shop-output")); d != "" {
		w.t.Errorf("the old output's ends (-before +after):\n%s", d)
	}
}

// A rebuild that is killed goes on from where it was, or is refused: it never takes over what it cannot know to be its own.
// Each case holds the rebuild back at one statement of its way to PostgreSQL and kills it there.
func TestSC27RebuildKilledAtEachPointGoesOnOrIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, statement string
		phase           string // what is recorded after the kill, "" for nothing
		refused         bool
	}{
		{"before anything is recorded", "begin_rebuild", "", false},
		{"after the creation of the topic", "record_rebuild_topic", "create", true},
		{"before the binding", "insert_binding", "bind", false},
		{"after the binding", "advance_rebuild", "bind", false},
		{"before the first decision", "copy_journal", "refold", false},
		{"before the first receipt", "acknowledge", "drain", false},
		{"before the first view page", "move_view", "drain", false},
		{"before the verification is recorded", "insert_verification", "verify", false},
		{"before the end is recorded", theEnd, "verify", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			w.loaded(story...)
			origin, ends := w.dump("shop"), w.ends("shop-output")
			w.killedAt(c.statement, c.phase)
			if c.refused {
				a := w.want(12, "it cannot be told whether this rebuild made the topic", rebuild+" -execute")
				if !strings.Contains(a.Cause(), "another -topic") || w.read(`SELECT count(*)::text FROM amends.output_binding`) != "1" {
					t.Error(a.Stderr)
				}
				w.want(0, "", strings.ReplaceAll(rebuild, "shop2-output", "shop2-again")+" -execute")
				if m := w.manifest("rebuilt.json"); m.Output.Topic != "shop2-again" {
					t.Errorf("bound to %s", m.Output.Topic)
				}
				if _, err := w.admin.Topic(t.Context(), "shop2-output"); err != nil {
					t.Errorf("the uncertain topic was not kept: %v", err)
				}
				w.equal(4, origin, ends)
				return
			}
			if a := w.want(0, "", rebuild); c.phase != "" && !strings.Contains(a.Stdout, "goes on from phase "+c.phase) {
				t.Error(a.Stdout)
			}
			a := w.want(0, "", rebuild+" -execute")
			if !strings.HasPrefix(a.Stdout, "REBUILT  ") {
				t.Error(a.Stdout)
			}
			w.equal(4, origin, ends)
		})
	}
}

// A destination that is there and is not recorded as this rebuild's is refused, and stays as it was.
func TestRebuildRefusesADestinationThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	w.Write("taken.json", w.want(0, "", "source create -namespace taken -topic taken-source").Stdout)
	w.want(0, "", "output create -manifest @taken.json -topic taken-output")
	w.Write("file.json", "{}")
	before := w.dump("")
	for _, c := range []struct {
		code        int
		cause, line string
	}{
		{13, `namespace "taken" exists and no rebuild made it`, "-namespace taken -topic new-output -manifest-out @new.json"},
		{13, "topic taken-output (kafka:", "-namespace new -topic taken-output -manifest-out @new.json"},
		{2, "must not be the source topic", "-namespace new -topic shop-source -manifest-out @new.json"},
		{2, "is the output of the namespace that is rebuilt", "-namespace new -topic shop-output -manifest-out @new.json"},
		{2, "is the namespace that is rebuilt", "-namespace shop -topic new-output -manifest-out @new.json"},
		{2, "it matches", "-namespace Upper -topic new-output -manifest-out @new.json"},
		{2, "not a topic name", "-namespace new -topic .. -manifest-out @new.json"},
		{2, "is another file", "-namespace new -topic new-output -manifest-out @file.json"},
		{2, "no file can be made there", "-namespace new -topic new-output -manifest-out @nowhere/new.json"},
		{2, "needs -namespace, -topic and -manifest-out", "-namespace new -topic new-output"},
	} {
		w.want(c.code, c.cause, "rebuild -manifest @pipeline.json "+c.line)
		w.want(c.code, c.cause, "rebuild -manifest @pipeline.json -execute "+c.line)
	}
	if d := cmp.Diff(before, w.dump("")); d != "" {
		t.Errorf("changed (-before +after):\n%s", d)
	}
	w.want(0, "", rebuild+" -execute")
	w.want(13, "goes to topic shop2-output, not other-output", strings.ReplaceAll(rebuild, "shop2-output", "other-output")+" -execute")
}

// A rebuild of a rebuild has an origin of its own.
func TestRebuildOfARebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	w.want(0, "", rebuild+" -execute")
	w.want(0, "", "rebuild -manifest @rebuilt.json -namespace shop3 -topic shop3-output -manifest-out @third.json -execute")
	w.want(13, `is a rebuild of "shop2", not of "shop"`, "rebuild -manifest @pipeline.json -namespace shop3 -topic shop3-output -manifest-out @fourth.json")
	w.want(0, "", "compare -manifest @pipeline.json -with @third.json")
}

// Topics that were recorded and are other ones now end a rebuild, with nothing read or written.
func TestRebuildRefusesTopicsThatAreNotTheRecordedOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	w.killedAt("advance_rebuild", "bind")
	w.recreate("shop2-output", 2)
	w.want(11, "incarnation", rebuild+" -execute")
	w.truncate("shop-source", 0, 1)
	w.want(11, "log start", rebuild+" -execute")
}

// killedAt begins a rebuild and kills it while a statement is held back, once that phase is recorded ("" for none).
func (w *world) killedAt(statement, phase string) {
	w.t.Helper()
	h := w.hold(statement)
	if statement == theEnd {
		h = w.holdEnd()
	}
	p := w.start(rebuild+" -execute", "AMENDS_DATABASE_URL="+h.url)
	h.await(w.t, p)
	programtest.Await(w.t, "phase "+phase, func() bool { return w.read(`SELECT coalesce((SELECT phase FROM amends.rebuilds), '')`) == phase })
	signal(w.t, p, syscall.SIGKILL)
	h.close()
}

// SIGTERM drains a rebuild: it ends with code 1, says where it is, and the same command goes on.
func TestRebuildStoppedGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	origin, ends := w.dump("shop"), w.ends("shop-output")
	h := w.hold("move_view")
	p := w.start(rebuild+" -execute", "AMENDS_DATABASE_URL="+h.url)
	h.await(t, p)
	programtest.Await(t, "phase drain", func() bool { return w.read(`SELECT phase FROM amends.rebuilds`) == "drain" })
	code := signal(t, p, syscall.SIGTERM)
	// The row says drain before the process has the answer to what it wrote there: told to end in between, it knows of refold.
	said := regexp.MustCompile("ended in phase (refold|drain); the same command goes on from there")
	if code != 1 || !said.MatchString(p.Stderr.String()) {
		t.Errorf("ended with %d, want 1 and %q\n%s", code, said, p.Stderr)
	}
	w.want(0, "", rebuild+" -execute")
	w.equal(4, origin, ends)
}

// guard holds the loader's guard of the source, as a running load does, until it is released.
func (w *world) guard() (release func()) {
	w.t.Helper()
	db, err := postgres.Open(w.t.Context(), postgres.Options{URL: w.url})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(db.Close)
	var guard *postgres.Guard
	incarnation := w.manifest("pipeline.json").Config.SourceIncarnation
	programtest.Await(w.t, "the guard is free", func() bool {
		guard, err = db.GuardSource(w.t.Context(), incarnation)
		return err == nil
	})
	return func() {
		if err := guard.Release(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A load that runs is waited for within the budget; after that the rebuild is INCOMPLETE and goes on when it is run again.
func TestRebuildWaitsForARunningLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	origin, ends := w.dump("shop"), w.ends("shop-output")
	release := w.guard()
	a := w.want(3, "LOAD_RUNNING", rebuild+" -execute -timeout 3s")
	if !strings.HasPrefix(a.Stdout, "NOT DONE  shop2 stays in phase verify: verify INCOMPLETE") {
		t.Error(a.Stdout)
	}
	p := w.start(rebuild + " -execute -timeout 60s")
	time.Sleep(2 * time.Second)
	release()
	if code := p.Wait().Code; code != 0 {
		t.Fatalf("ended with %d\n%s\n%s", code, p.Stdout, p.Stderr)
	}
	w.equal(4, origin, ends)
}

// A blocked key stays blocked: the rebuild is complete, and says so with the code of BLOCKED.
func TestRebuildOfABlockedKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loadedBlocked()
	a := w.want(4, "1 key blocked", rebuild+" -execute")
	if !strings.HasPrefix(a.Stdout, "REBUILT  shop2 from shop: verify BLOCKED") {
		t.Error(a.Stdout)
	}
	w.want(0, "", "compare -manifest @pipeline.json -with @rebuilt.json")
	w.want(4, "verify BLOCKED", rebuild+" -execute")
}

func (w *world) loadedBlocked() {
	w.t.Helper()
	line, _, _ := strings.Cut(w.fixtures(story[0]), "\n")
	w.Write("conflict.jsonl", line+"\n"+strings.Replace(line, `"quantity":100`, `"quantity":90`, 1)+"\n")
	w.filled("-file @conflict.jsonl", 4)
}

// A rebuild whose view drifts is not done: it says so, and once the view is right it ends.
func TestRebuildThatDriftsIsNotDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	w.killedAt("insert_verification", "verify")
	w.exec(`UPDATE amends.view_rows SET close = close + 1 WHERE kind = 1 AND present AND namespace_id = (SELECT namespace_id FROM amends.rebuilds)`)
	a := w.want(5, "DRIFT", rebuild+" -execute")
	if !strings.HasPrefix(a.Stdout, "NOT DONE  shop2 stays in phase verify: verify DRIFT") {
		t.Error(a.Stdout)
	}
	w.exec(`UPDATE amends.view_rows SET close = close - 1 WHERE kind = 1 AND present AND namespace_id = (SELECT namespace_id FROM amends.rebuilds)`)
	w.want(0, "", rebuild+" -execute")
}

// A broker that is away ends a rebuild as an operational failure: code 1.
func TestRebuildWithoutABroker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	p := w.start(rebuild+" -execute", "AMENDS_BROKERS=127.0.0.1:1")
	if code := p.Wait().Code; code != 1 || !strings.Contains(p.Stderr.String(), broker.ErrUnavailable.Error()) {
		t.Errorf("ended with %d\n%s", code, p.Stderr)
	}
}
