package restore_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/programtest"
)

// produce writes records to a partition in one transaction, which it commits or aborts; outside of one where id is "".
func (w *world) produce(topic, id string, commit bool, values ...string) {
	w.t.Helper()
	options := []kgo.Opt{kgo.SeedBrokers(w.host...), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	if id != "" {
		options = append(options, kgo.TransactionalID(id))
	}
	c, err := kgo.NewClient(options...)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	if id != "" {
		if err := c.BeginTransaction(); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, v := range values {
		r := &kgo.Record{Topic: topic, Partition: 0, Key: []byte(`{"item":"widget","location":"berlin"}`), Value: []byte(v)}
		if err := c.ProduceSync(w.t.Context(), r).FirstErr(); err != nil {
			w.t.Fatal(err)
		}
	}
	if id != "" {
		if err := c.EndTransaction(w.t.Context(), kgo.TransactionEndTry(commit)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Aborted records and markers are no records, also at the end of the source: a replay counts none of them, and a rebuild
// reaches its end (S13).
func TestReplayAndRebuildOverAbortedRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	lines := strings.Split(strings.TrimSpace(w.fixtures(story...)), "\n")
	w.produce("shop-source", "a", true, lines[0])
	w.produce("shop-source", "a", false, strings.Replace(lines[1], `"quantity":20`, `"quantity":21`, 1), "poison")
	w.produce("shop-source", "b", true, lines[1:]...)
	w.produce("shop-source", "b", false, "poison")
	w.filled("", 0)
	origin, ends := w.dump("shop"), w.ends("shop-output")
	if a := w.want(0, "", "replay -manifest @pipeline.json"); !strings.HasPrefix(a.Stdout, "SAME  5 records ") || !strings.Contains(a.Stdout, "5 records below frontier 12") {
		t.Error(a.Stdout)
	}
	w.want(0, "", rebuild+" -execute")
	w.equal(4, origin, ends)
}

// A replay looks no further than the frontier: records that no worker has decided yet are not missing.
func TestReplayStopsAtTheFrontier(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story[0])
	w.want(0, "", "source load -manifest @pipeline.json -file "+programtest.Fixture(t, story[1]))
	if a := w.want(0, "", "replay -manifest @pipeline.json -execute"); !strings.HasPrefix(a.Stdout, "REPLAYED  3 records ") {
		t.Error(a.Stdout)
	}
}

// The topic that was recorded is bound only while it is empty.
func TestRebuildBindsAnEmptyTopicOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	w.killedAt("insert_binding", "bind")
	w.produce("shop2-output", "", true, "a stranger's")
	w.want(13, "binding refused", rebuild+" -execute")
	if n := w.read(`SELECT count(*)::text FROM amends.output_binding`); n != "1" {
		t.Errorf("%s bindings", n)
	}
}

// A namespace whose output is lost, or was never made, is rebuilt all the same: only its source is read.
func TestRebuildOfANamespaceWithoutItsOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	w.recreate("shop-output", 2)
	w.exec("UPDATE amends.journal SET digest = substr(sha256(digest), 1, 16)")
	origin, ends := w.dump("shop"), w.ends("shop-output")
	w.want(0, "", rebuild+" -execute")
	w.equal(4, origin, ends)
	w.want(0, "", "rebuild -manifest @source.json -namespace shop3 -topic shop3-output -manifest-out @third.json -execute")
	w.want(0, "", "compare -manifest @rebuilt.json -with @third.json")
}

// Two of the same rebuild at once do no harm: each ends as done, as refused or as safe to repeat, and then it is done. One that looks
// before the other has recorded its topic, and again after that has written the manifest, refuses that as another file.
func TestTwoOfTheSameRebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	origin, ends := w.dump("shop"), w.ends("shop-output")
	var both sync.WaitGroup
	one, two := w.start(rebuild+" -execute"), w.start(rebuild+" -execute")
	for _, p := range []*programtest.Process{one, two} {
		both.Go(func() { <-p.Done() })
	}
	both.Wait()
	for _, p := range []*programtest.Process{one, two} {
		a := p.Wait()
		if code := a.Code; code != 0 && code != 1 && code != 10 && code != 12 && code != 13 && !a.Is(2, "rebuilt.json exists and is another file") {
			t.Errorf("ended with %d\n%s", code, p.Stderr)
		}
	}
	if one.Wait().Code != 0 && two.Wait().Code != 0 {
		w.want(0, "", rebuild+" -execute")
	}
	w.equal(4, origin, ends)
}
