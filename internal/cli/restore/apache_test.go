package restore_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/kafkatest"
	"amends/internal/ledger"
	"amends/internal/oracle"
	"amends/internal/programtest"
	"amends/internal/verify/stored"
	"amends/internal/workload"
)

// transact publishes records to the source in one transaction, committed or not, and waits until its markers are in the log.
// Ends is where each partition ends, counted: a record is one offset, and so is a marker.
func (w *world) transact(topic string, commit bool, ends []int64, records []ledger.SourceRecord) {
	w.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(w.host...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("amends-test-"+rand.Text()))
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	if err := c.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	touched := map[ledger.Partition]bool{}
	for _, r := range records {
		one := &kgo.Record{Topic: topic, Partition: int32(r.Partition), Key: r.Key, Value: r.Value}
		if err := c.ProduceSync(w.t.Context(), one).FirstErr(); err != nil {
			w.t.Fatal(err)
		}
		ends[r.Partition]++
		touched[r.Partition] = true
	}
	if err := c.EndTransaction(w.t.Context(), kgo.TransactionEndTry(commit)); err != nil {
		w.t.Fatal(err)
	}
	for p := range touched {
		ends[p]++
	}
	programtest.Await(w.t, "the markers are in the log", func() bool {
		stable, err := w.admin.Stable(w.t.Context(), topic)
		return err == nil && slices.EqualFunc(stable, ends, func(at ledger.Offset, end int64) bool { return int64(at) == end })
	})
}

// replayed is the part of replay's JSON that the test reads.
type replayed struct {
	Result      string
	Partitions  []position
	Records     int `json:"source_records"`
	Differences struct{ Count int }
}

type position struct {
	Installed *int64 `json:"installed_epoch"`
	Epoch     int64
	Frontier  int64
	Records   int `json:"source_records"`
}

// replays replays what is at those ends, and checks that every record that can be seen is found, and what is installed.
func (w *world) replays(result, flags string, ends []int64, records []ledger.SourceRecord) {
	w.t.Helper()
	before := w.epochs()
	a := w.want(0, "", "replay -manifest @pipeline.json -o json"+flags)
	var got replayed
	if err := json.Unmarshal([]byte(a.Stdout), &got); err != nil {
		w.t.Fatalf("%v: %s", err, a.Stdout)
	}
	want := replayed{Result: result, Records: len(records)}
	for p, end := range ends {
		at := position{Epoch: before[p], Frontier: end}
		for _, r := range records {
			if int(r.Partition) == p {
				at.Records++
			}
		}
		if flags != "" {
			higher := before[p] + 1
			at.Installed = &higher
			before[p] = higher
		}
		want.Partitions = append(want.Partitions, at)
	}
	if d := cmp.Diff(want, got); d != "" {
		w.t.Errorf("replay%s (-counted +answered):\n%s", flags, d)
	}
	if d := cmp.Diff(before, w.epochs()); d != "" {
		w.t.Errorf("epochs after replay%s (-want +database):\n%s", flags, d)
	}
}

func (w *world) epochs() (all []int64) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.read(`SELECT json_agg(epoch ORDER BY partition)::text FROM amends.partitions`)), &all); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// outputs counts what the oracle expects to be present after records.
func (w *world) outputs(records []ledger.SourceRecord) (n int) {
	w.t.Helper()
	o := oracle.New(stored.OracleConfig(w.manifest("pipeline.json").Config))
	for i, r := range records {
		o.Add(r.Partition, ledger.Offset(i), r.Key, r.Value)
	}
	for e := range o.All() {
		n += len(e.Balances) + len(e.Alerts) + 1 // the status
	}
	return n
}

// SC27 and S13 on Apache Kafka: a source with committed and aborted transactions, poison, and markers at its end is replayed, dry
// and executed, with the workers stopped, fenced and started again, and rebuilt to PASS; the rebuild equals the old view.
func TestSC27ReplayAndRebuildOnApacheKafka(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	name := "restored-" + strings.ToLower(rand.Text()[:8])
	source, output, again := kafkatest.Topic(t, brokers), kafkatest.Topic(t, brokers), kafkatest.Topic(t, brokers)
	o := workload.DefaultHistory(27)
	o.Records, o.Keys, o.Conflicts, o.Counts, o.Hostile, o.Open, o.Edges, o.Gaps = 400, 6, 0, 10, true, true, false, false
	h := workload.NewHistory(o)
	w := newWorldNamed(t, brokers, string(h.Setting.AppendFile(nil, name)), name, source, output)
	ends := make([]int64, o.Partitions)
	load := func(records []ledger.SourceRecord) {
		w.history(&workload.History{Records: records})
		for _, r := range records {
			ends[r.Partition]++
		}
		w.filled("-file @history.raw -format raw", 0)
	}
	aborted := func() { // at the end of the source: the roles must come to its marker all the same
		w.transact(source, false, ends, h.Records[340:])
		w.filled("", 0)
	}
	w.transact(source, true, ends, h.Records[:150])
	w.transact(source, false, ends, h.Records[150:210])
	load(h.Records[150:360])
	aborted()
	w.replays("SAME", "", ends, h.Records[:360])
	w.replays("REPLAYED", " -execute", ends, h.Records[:360])

	before := w.epochs()
	roles := w.start("run -manifest @pipeline.json")
	programtest.Await(t, "the worker claims", func() bool {
		return slices.EqualFunc(w.epochs(), before, func(now, then int64) bool { return now > then })
	})
	w.want(0, "", "replay -manifest @pipeline.json -execute")
	if code := roles.Wait().Code; code != 10 {
		t.Errorf("the worker ended with %d, want 10\n%s", code, roles.Stderr)
	}
	load(h.Records[360:])
	aborted()
	w.replays("SAME", "", ends, h.Records)

	origin, published := w.dump(name), w.ends(output)
	line := fmt.Sprintf("rebuild -manifest @pipeline.json -namespace %s-2 -topic %s -manifest-out @rebuilt.json", name, again)
	a := w.want(0, "", line+" -execute")
	if want := fmt.Sprintf("REBUILT  %s-2 from %s: verify PASS  %d source records, ", name, name, len(h.Records)); !strings.HasPrefix(a.Stdout, want) {
		t.Errorf("%q does not begin with %q", a.Stdout, want)
	}
	if c := w.compare(0, compare); c.Result != "EQUAL" || c.Equal != w.outputs(h.Records) || c.Differences.Count != 0 || c.A.Present != c.Equal || c.B.Present != c.Equal || !c.SameCuts {
		t.Errorf("%+v, want %d equal outputs", c, w.outputs(h.Records))
	}
	if d := cmp.Diff(origin, w.dump(name)); d != "" {
		t.Errorf("the old namespace (-before +after):\n%s", d)
	}
	if d := cmp.Diff(published, w.ends(output)); d != "" {
		t.Errorf("the old output's ends (-before +after):\n%s", d)
	}
	roles = w.start("run -manifest @rebuilt.json") // the rebuild goes on like any other namespace
	w.want(0, "", "verify -manifest @rebuilt.json -deep")
	roles.Started() // they have nothing to do, and the verification nothing to wait for
	if code := signal(t, roles, syscall.SIGTERM); code != 0 {
		t.Errorf("roles of the rebuild ended with %d\n%s", code, roles.Stderr)
	}
}
