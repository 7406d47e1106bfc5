package verify_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/pipelinetest"
	"amends/internal/store"
	"amends/internal/verify"
)

var widget = ledger.StockKey{Item: "widget", Location: "berlin"}

// budget is what a verification may take that has an answer at once, on a busy machine too; short is that of one that waits
// for what cannot come, with room for what it says then.
const budget, short = time.Minute, 5 * time.Second

// job is a verification of w.
func job(w *pipelinetest.World) *verify.Job {
	m := w.Manifest
	return &verify.Job{Manifest: m, Topics: w.Admin, Store: w.NS, Timeout: budget,
		Source: func() (verify.Reader, error) {
			return broker.NewReader(w.Broker, m.SourceTopic, m.Config.SourceIncarnation)
		},
		Output: func() (verify.Reader, error) {
			return broker.NewReader(w.Broker, m.Output.Topic, m.Output.Incarnation)
		},
		Guard: func(ctx context.Context) (verify.Guard, error) {
			g, err := w.DB.GuardSource(ctx, m.Config.SourceIncarnation)
			if err != nil {
				return nil, err
			}
			return g, nil
		}}
}

func run(t *testing.T, j *verify.Job) *verify.Report {
	t.Helper()
	r, err := j.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func want(t *testing.T, r *verify.Report, status verify.Status) {
	t.Helper()
	if r.Status != status {
		t.Fatalf("status %s, want %s; reasons %v, first %+v", r.Status, status, r.Reasons, r.First)
	}
}

func worked(t *testing.T) *pipelinetest.World {
	t.Helper()
	w := pipelinetest.New(t, "")
	for _, stage := range [][]string{pipelinetest.Before, pipelinetest.Correction, pipelinetest.CancelLastDay} {
		w.Values(t, stage...)
		w.Settle(t)
	}
	return w
}

// modes runs f for each way of verifying.
func modes(t *testing.T, f func(t *testing.T, set func(*verify.Job))) {
	for name, set := range map[string]func(*verify.Job){
		"quiesced": func(*verify.Job) {}, "live": func(j *verify.Job) { j.Live = true },
		"deep": func(j *verify.Job) { j.Deep = true }, "live deep": func(j *verify.Job) { j.Live, j.Deep = true, true },
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); f(t, set) })
	}
}

func TestSC03WorkedExamplePasses(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, set func(*verify.Job)) {
		w := worked(t)
		j := job(w)
		set(j)
		r := run(t, j)
		want(t, r, verify.Pass)
		if diff := cmp.Diff([]verify.Boundary{{SourceEnd: 5, OutputEnd: 11}, {Partition: 1}}, r.Boundary); diff != "" {
			t.Error(diff)
		}
		if r.SourceRecords != 5 || r.Rejected != 0 || r.Messages != 11 || r.Outputs != 6 || r.Differences != 0 || len(r.Blocked) != 0 || len(r.Reasons) != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestEmptyNamespacePasses(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, set func(*verify.Job)) {
		w := pipelinetest.New(t, "")
		j := job(w)
		set(j)
		want(t, run(t, j), verify.Pass)
	})
}

func TestSC26Blocked(t *testing.T) {
	t.Parallel()
	w := worked(t)
	w.Values(t, strings.Replace(pipelinetest.Correction[0], ":70}", ":71}", 1))
	w.Settle(t)
	j := job(w)
	j.Deep = true
	r := run(t, j)
	want(t, r, verify.Blocked)
	reasons := []ledger.Reason{{Code: ledger.Ambiguous, TxnID: "T-1", Revision: 2}}
	if diff := cmp.Diff([]verify.BlockedKey{{Key: widget, Status: ledger.Status{Blocked: true, Reasons: reasons}}}, r.Blocked); diff != "" {
		t.Error(diff)
	}
}

func TestSC26IncompleteNamesEachStage(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, "")
	w.Values(t, pipelinetest.Before...)
	conflict := strings.Replace(pipelinetest.Before[0], ":100}", ":90}", 1)
	w.Values(t, conflict)
	codes := func(r *verify.Report) (out []verify.Code) {
		for _, x := range r.Reasons {
			out = append(out, x.Code)
		}
		return out
	}
	j := job(w)
	j.Timeout = short
	r := run(t, j)
	want(t, r, verify.Incomplete)
	if diff := cmp.Diff([]verify.Code{verify.SourceNotProcessed}, codes(r)); diff != "" {
		t.Error(diff)
	}
	if len(r.Blocked) != 1 || r.Blocked[0].Key != widget {
		t.Errorf("the known conflict is not listed: %+v", r.Blocked)
	}
	if r.Reasons[0].Offset != 0 || r.Reasons[0].Partition != 0 {
		t.Errorf("first missing coordinate: %+v", r.Reasons[0])
	}
	w.Work(t)
	r = run(t, j)
	want(t, r, verify.Incomplete)
	if diff := cmp.Diff([]verify.Code{verify.OutboxNotDrained, verify.ViewBehind}, codes(r)); diff != "" {
		t.Error(diff)
	}
	w.Relay(t)
	r = run(t, j)
	want(t, r, verify.Incomplete)
	if diff := cmp.Diff([]verify.Code{verify.ViewBehind}, codes(r)); diff != "" {
		t.Error(diff)
	}
	j.Live, j.Timeout = true, budget
	want(t, run(t, j), verify.Pass) // at the present cut, which is 0
	w.View(t)
	j.Live = false
	want(t, run(t, j), verify.Blocked)
}

func TestLiveComparesAtTheCut(t *testing.T) {
	t.Parallel()
	w := worked(t)
	w.Values(t, strings.Replace(pipelinetest.Before[1], "T-2", "T-4", 1))
	w.Work(t)
	w.Relay(t)
	j := job(w)
	j.Live, j.Deep = true, true
	r := run(t, j)
	want(t, r, verify.Pass)
	if r.Boundary[0] != (verify.Boundary{SourceEnd: 5, OutputEnd: 11}) {
		t.Errorf("boundary %+v", r.Boundary[0])
	}
}

// TestOpenTransactionIsNamed shows F14.
func TestOpenTransactionIsNamed(t *testing.T) {
	t.Parallel()
	w := worked(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(w.Broker.Brokers...), kgo.TransactionalID("open"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: w.Manifest.SourceTopic, Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	j := job(w)
	j.Timeout = short
	r := run(t, j)
	want(t, r, verify.Incomplete)
	if r.Reasons[0].Code != verify.OpenTransaction || r.Reasons[0].Offset != 5 {
		t.Errorf("%+v", r.Reasons)
	}
	if err := client.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	w.Settle(t)
	j.Timeout, j.Deep = budget, true
	r = run(t, j) // C34: the partition ends in a marker
	want(t, r, verify.Pass)
	if r.Boundary[0].SourceEnd != 7 || r.SourceRecords != 5 {
		t.Errorf("%+v", r)
	}
}

func TestGuardOutlastsTheBudget(t *testing.T) {
	t.Parallel()
	w := worked(t)
	g, err := w.DB.GuardSource(t.Context(), w.Manifest.Config.SourceIncarnation)
	if err != nil {
		t.Fatal(err)
	}
	j := job(w)
	j.Timeout = short
	r := run(t, j)
	want(t, r, verify.Incomplete)
	if r.Reasons[0].Code != verify.LoadRunning {
		t.Errorf("%+v", r.Reasons)
	}
	j.Live, j.Timeout = true, budget
	want(t, run(t, j), verify.Pass) // needs no guard
	if err := g.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.Live = false
	want(t, run(t, j), verify.Pass)
	if _, err := w.DB.GuardSource(t.Context(), w.Manifest.Config.SourceIncarnation); err != nil {
		t.Fatalf("the guard was not released: %v", err)
	}
}

func TestSC21StoppedPartitionIsIncomplete(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, set func(*verify.Job)) {
		w := worked(t)
		w.Values(t, strings.Replace(pipelinetest.Correction[0], ":70}", ":71}", 1))
		w.Settle(t)
		w.Stop(t, 0, store.Violation{Reason: "test", Offset: 12})
		j := job(w)
		set(j)
		began := time.Now()
		r := run(t, j)
		want(t, r, verify.Incomplete)
		if r.Reasons[0].Code != verify.PartitionStopped || r.Reasons[0].Offset != 12 {
			t.Errorf("%+v", r.Reasons)
		}
		if len(r.Blocked) != 1 || r.Blocked[0].Key != widget {
			t.Errorf("the known conflict is not listed: %+v", r.Blocked)
		}
		if time.Since(began) > budget/2 {
			t.Error("it waited for what cannot come")
		}
	})
}

func TestSC24UnavailableTopics(t *testing.T) {
	t.Parallel()
	admin := func(t *testing.T, w *pipelinetest.World) *kadm.Client {
		c, err := kgo.NewClient(kgo.SeedBrokers(w.Broker.Brokers...))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return kadm.NewClient(c)
	}
	for name, breakIt := range map[string]struct {
		do   func(t *testing.T, w *pipelinetest.World, a *kadm.Client) error
		code verify.Code
	}{
		"source recreated": {code: verify.SourceIdentity, do: func(t *testing.T, w *pipelinetest.World, a *kadm.Client) error {
			if _, err := a.DeleteTopic(t.Context(), w.Manifest.SourceTopic); err != nil {
				return err
			}
			_, err := w.Admin.CreateTopic(t.Context(), w.Manifest.SourceTopic, 2, 1)
			return err
		}},
		"output deleted": {code: verify.OutputIdentity, do: func(t *testing.T, w *pipelinetest.World, a *kadm.Client) error {
			_, err := a.DeleteTopic(t.Context(), w.Manifest.Output.Topic)
			return err
		}},
		"finite retention": {code: verify.SourceIdentity, do: func(t *testing.T, w *pipelinetest.World, a *kadm.Client) error {
			v := "60000000"
			_, err := a.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &v}}, w.Manifest.SourceTopic)
			return err
		}},
		"partitions added": {code: verify.OutputIdentity, do: func(t *testing.T, w *pipelinetest.World, a *kadm.Client) error {
			_, err := a.CreatePartitions(t.Context(), 1, w.Manifest.Output.Topic)
			return err
		}},
		"history truncated": {code: verify.SourceIdentity, do: func(t *testing.T, w *pipelinetest.World, a *kadm.Client) error {
			var o kadm.Offsets
			o.AddOffset(w.Manifest.SourceTopic, 0, 2, -1)
			_, err := a.DeleteRecords(t.Context(), o)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worked(t)
			if err := breakIt.do(t, w, admin(t, w)); err != nil {
				t.Fatal(err)
			}
			r := run(t, job(w))
			want(t, r, verify.Unavailable)
			if r.Reasons[0].Code != breakIt.code {
				t.Errorf("%+v", r.Reasons)
			}
		})
	}
}

func TestUnboundManifestIsUsage(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, "")
	j := job(w)
	j.Manifest = w.Source
	if _, err := j.Run(t.Context()); err != verify.ErrUnbound {
		t.Errorf("%v", err)
	}
}

// Progress counts what is read: the source once, and deep the source again and the output topic; its total is told before
// the end.
func TestProgressCountsWhatIsRead(t *testing.T) {
	t.Parallel()
	w := worked(t)
	for deep, all := range map[bool]int64{false: 5, true: 5 + 5 + 11} {
		j := job(w)
		j.Deep = deep
		var done, total, calls int64
		j.Progress = func(d, of int64) {
			if d < done || of < d {
				t.Errorf("%d of %d after %d", d, of, done)
			}
			done, total = d, of
			calls++
		}
		want(t, run(t, j), verify.Pass)
		if done != all || total != all || calls == 0 {
			t.Errorf("deep %t: %d of %d in %d calls, want %d", deep, done, total, calls, all)
		}
	}
}
