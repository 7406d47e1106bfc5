package telemetry

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"amends/internal/health"
	"amends/internal/ledger"
	"amends/internal/verify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// progress has a partition of which everything is known, and one that was never measured and of whose source nothing is.
func progress() *health.Progress {
	end, records, lag, age := int64(1240), int64(40), 12.5, 30.0
	return &health.Progress{At: noon, Namespace: "demo", BlockedKeys: 3,
		Partitions: []health.Partition{
			{Partition: 0, Frontier: 1200, End: &end, Lag: health.Lag{Records: &records, Seconds: &lag}, Outbox: health.Waiting{Outputs: 7, Seconds: 1.5},
				Relay: &health.Delivery{}, View: &health.Delivery{}, Unapplied: health.Waiting{Outputs: 2, Seconds: 0.25}, BlockedKeys: 3,
				Measurements: &health.Measurements{Commits: 90, Total: &health.Sample{Records: 1200, Accepted: 1197, Rejected: 3, Rewind: 48, Refolded: 8123, Changed: 7011, Withdrawn: 17,
					Lock: 500_000_000, PreCommit: 3_200_000_000}}},
			{Partition: 1, Frontier: 5, Stop: &health.Stop{Reason: "another namespace", Offset: 9}, Measurements: &health.Measurements{}},
		},
		Blocked: []health.Blocked{
			{Item: "widget", Location: "berlin", ID: ledger.StockKey{Item: "widget", Location: "berlin"}, Since: &health.Since{AgeSeconds: 60}},
			{Item: "gadget", Location: "oslo", Since: &health.Since{AgeSeconds: 3600, Longer: true}},
			{Item: "gizmo", Location: "rome"},
		},
		Verification: &health.Verification{Finished: noon.Add(-time.Hour), Status: "PASS", AgeSeconds: 3600},
		Audit:        &health.Audit{Checked: noon.Add(-10 * time.Second), Verified: &noon, AgeSeconds: &age, Status: "BLOCKED"},
	}
}

// samples writes a reading as a scrape does and returns every sample by name and labels.
func samples(t *testing.T, r *reading) (map[string]float64, *prometheus.Registry) {
	t.Helper()
	r.namespace, r.build = "demo", Build{Version: "v1.2.3", Revision: "abc", Go: "go1.26"}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(scrape{New("demo", r.build), r})
	found, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range found {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			slices.Sort(labels)
			value := m.GetGauge().GetValue()
			if m.GetCounter() != nil {
				value = m.GetCounter().GetValue()
			}
			got[f.GetName()+" "+strings.Join(labels, " ")] = value
		}
	}
	return got, registry
}

// Every sample of a namespace in which everything happens at once, by hand; what is not known is not there.
func TestSamplesOfAReading(t *testing.T) {
	t.Parallel()
	got, registry := samples(t, &reading{progress: progress(), asked: true, answered: true})
	want := map[string]float64{
		"amends_build_info go_version=go1.26 revision=abc version=v1.2.3": 1,
		"amends_database_up namespace=demo":                               1,
		"amends_broker_up namespace=demo":                                 1,
		"amends_blocked_keys namespace=demo partition=0":                  3,
		"amends_blocked_keys namespace=demo partition=1":                  0,
		"amends_oldest_block_age_seconds namespace=demo":                  3600,
		"amends_rejected_records_total namespace=demo partition=0":        3,
		"amends_partition_stopped namespace=demo partition=0":             0,
		"amends_partition_stopped namespace=demo partition=1":             1,
		"amends_protocol_errors_total namespace=demo partition=0":         0,
		"amends_protocol_errors_total namespace=demo partition=1":         1,
		"amends_source_frontier namespace=demo partition=0":               1200,
		"amends_source_frontier namespace=demo partition=1":               5,
		"amends_source_end namespace=demo partition=0":                    1240,
		"amends_source_lag_records namespace=demo partition=0":            40,
		"amends_source_lag_seconds namespace=demo partition=0":            12.5,
		"amends_outbox_outputs namespace=demo partition=0":                7,
		"amends_outbox_outputs namespace=demo partition=1":                0,
		"amends_outbox_oldest_age_seconds namespace=demo partition=0":     1.5,
		"amends_outbox_oldest_age_seconds namespace=demo partition=1":     0,
		"amends_view_pending_outputs namespace=demo partition=0":          2,
		"amends_view_oldest_age_seconds namespace=demo partition=0":       0.25,
		"amends_verification_status namespace=demo status=PASS":           0,
		"amends_verification_status namespace=demo status=BLOCKED":        1,
		"amends_verification_status namespace=demo status=INCOMPLETE":     0,
		"amends_verification_status namespace=demo status=DRIFT":          0,
		"amends_verification_status namespace=demo status=UNAVAILABLE":    0,
		"amends_verification_age_seconds namespace=demo":                  10,
		"amends_verified_age_seconds namespace=demo":                      30,
		"amends_commits_total namespace=demo partition=0":                 90,
		"amends_committed_records_total namespace=demo partition=0":       1200,
		"amends_output_versions_total namespace=demo partition=0":         7011,
		"amends_withdrawals_total namespace=demo partition=0":             17,
		"amends_refolded_closes_total namespace=demo partition=0":         8123,
		"amends_commit_lock_seconds_total namespace=demo partition=0":     0.5,
		"amends_commit_prepare_seconds_total namespace=demo partition=0":  3.2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	// With everything there: each metric of the table is in it, and the names follow Prometheus' conventions.
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) != 0 {
		t.Errorf("%v, %v", problems, err)
	}
	for _, m := range Metrics() {
		if n, err := testutil.GatherAndCount(registry, m.Name); err != nil || n == 0 {
			t.Errorf("no sample of %s, %v", m.Name, err)
		}
	}
}

// With the database away nothing is said of the namespace, least of all something old; before the broker was asked, nothing of it.
func TestSamplesWithoutDatabase(t *testing.T) {
	t.Parallel()
	const build = "amends_build_info go_version=go1.26 revision=abc version=v1.2.3"
	for _, c := range []struct {
		reading reading
		want    map[string]float64
	}{
		{reading{}, map[string]float64{build: 1, "amends_database_up namespace=demo": 0}},
		{reading{asked: true}, map[string]float64{build: 1, "amends_database_up namespace=demo": 0, "amends_broker_up namespace=demo": 0}},
		{reading{asked: true, answered: true}, map[string]float64{build: 1, "amends_database_up namespace=demo": 0, "amends_broker_up namespace=demo": 1}},
	} {
		got, _ := samples(t, &c.reading)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// What was verified last, and the age of trust: as status says it.
func TestVerificationMetrics(t *testing.T) {
	t.Parallel()
	young, old := 5.0, 500.0
	ago := func(seconds int) time.Time { return noon.Add(-time.Duration(seconds) * time.Second) }
	pass := func(status string, seconds int) *health.Verification {
		return &health.Verification{Status: status, Finished: ago(seconds), AgeSeconds: float64(seconds)}
	}
	for name, c := range map[string]struct {
		verification *health.Verification
		audit        *health.Audit
		status       string
		age          float64  // of the verification
		verified     *float64 // nil for absent
	}{
		"nothing yet":                          {},
		"a verification alone":                 {verification: pass("PASS", 5), status: "PASS", age: 5, verified: &young},
		"one that found something":             {verification: pass("DRIFT", 5), status: "DRIFT", age: 5},
		"an incomplete one":                    {verification: pass("INCOMPLETE", 5), status: "INCOMPLETE", age: 5},
		"an audit that never found equality":   {audit: &health.Audit{Status: "INCOMPLETE", Checked: ago(7)}, status: "INCOMPLETE", age: 7},
		"an audit behind a verification":       {verification: pass("PASS", 5), audit: &health.Audit{Status: "BLOCKED", Checked: ago(9), AgeSeconds: &old}, status: "PASS", age: 5, verified: &young},
		"an audit after a verification":        {verification: pass("PASS", 500), audit: &health.Audit{Status: "PASS", Checked: ago(5), AgeSeconds: &young}, status: "PASS", age: 5, verified: &young},
		"a drift stands against a later audit": {verification: pass("DRIFT", 500), audit: &health.Audit{Status: "PASS", Checked: ago(5), AgeSeconds: &young}, status: "DRIFT", age: 500, verified: &young},
		"a drift of the audit":                 {verification: pass("PASS", 500), audit: &health.Audit{Status: "DRIFT", Checked: ago(5), AgeSeconds: &old}, status: "DRIFT", age: 5, verified: &old},
	} {
		got, _ := samples(t, &reading{progress: &health.Progress{At: noon, Verification: c.verification, Audit: c.audit}})
		if c.status == "" {
			for sample := range got {
				if strings.HasPrefix(sample, "amends_verif") {
					t.Errorf("%s: %s", name, sample)
				}
			}
			continue
		}
		for _, s := range statuses {
			if v, there := got["amends_verification_status namespace=demo status="+s]; !there || v == 1 != (s == c.status) {
				t.Errorf("%s: %s is %v", name, s, v)
			}
		}
		if v := got["amends_verification_age_seconds namespace=demo"]; v != c.age {
			t.Errorf("%s: age %v, want %v", name, v, c.age)
		}
		if v, there := got["amends_verified_age_seconds namespace=demo"]; there != (c.verified != nil) || there && v != *c.verified {
			t.Errorf("%s: verified %v %v ago, want %v", name, there, v, c.verified)
		}
	}
}

// The statuses are those of a verification, all of them.
func TestStatusesAreThoseOfVerify(t *testing.T) {
	t.Parallel()
	want := []string{string(verify.Pass), string(verify.Blocked), string(verify.Incomplete), string(verify.Drift), string(verify.Unavailable)}
	if diff := cmp.Diff(want, statuses); diff != "" {
		t.Error(diff)
	}
}

// Labels tell where, never what: no item, location or transaction comes into a metric, and no metric splits by more than these.
func TestLabelsNameNoKeys(t *testing.T) {
	t.Parallel()
	for _, m := range Metrics() {
		for _, l := range m.Labels {
			if !slices.Contains([]string{"namespace", "partition", "status", "version", "revision", "go_version"}, l) {
				t.Errorf("%s has label %s", m.Name, l)
			}
		}
	}
	got, _ := samples(t, &reading{progress: progress(), asked: true})
	for sample := range got {
		for _, word := range []string{"widget", "berlin", "gadget", "oslo", "gizmo", "rome"} {
			if strings.Contains(sample, word) {
				t.Errorf("%s names a key", sample)
			}
		}
	}
}

// An exporter that does not know yet what to look at answers all the same, with the process's own metrics.
func TestScrapeBeforeTheStart(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	New("demo", Build{Version: "v1"}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	body := w.Body.String()
	for _, line := range []string{"\namends_database_up{namespace=\"demo\"} 0\n", "\n# TYPE amends_database_up gauge\n", "\ngo_goroutines ", "\nprocess_start_time_seconds ",
		`amends_build_info{go_version="",revision="",version="v1"} 1`} {
		if !strings.Contains(body, line) {
			t.Errorf("no %q in\n%s", line, body)
		}
	}
	if w.Code != 200 || strings.Contains(body, "amends_blocked_keys{") || strings.Contains(body, "amends_broker_up{") {
		t.Errorf("%d\n%s", w.Code, body)
	}
}

// A scrape that gets no turn says nothing at all rather than that the database is away.
func TestScrapeWithoutATurn(t *testing.T) {
	t.Parallel()
	e := New("demo", Build{})
	e.Watch(health.Look{})
	e.turn <- struct{}{}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "amends_") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
