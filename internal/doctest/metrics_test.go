package doctest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"amends/internal/telemetry"
)

const metricsPage = "docs/guides/metrics.md"

// The table of metrics is that of the code.
func TestMetricsArePageAndCode(t *testing.T) {
	t.Parallel()
	all := telemetry.Metrics()
	if len(all) < 20 {
		t.Fatalf("%d metrics: these are not all", len(all))
	}
	var b strings.Builder
	b.WriteString("| metric | type | labels | says | absent |\n|---|---|---|---|---|\n")
	known := map[string]bool{}
	for _, m := range all {
		kind := "gauge"
		if m.Counter {
			kind = "counter"
		}
		if known[m.Name] {
			t.Errorf("%s is there twice", m.Name)
		}
		known[m.Name] = true
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", m.Name, kind, strings.Join(m.Labels, "`, `"), cell(m.Help), cell(m.Absent))
	}
	generated(t, metricsPage, "metrics", b.String())
	for _, path := range []string{metricsPage, "docs/guides/operate.md", "README.md", "CHANGELOG.md"} {
		for _, name := range metricNames.FindAllString(document(t, path), -1) {
			if !known[name] {
				t.Errorf("%s names %s, which no scrape holds", path, name)
			}
		}
	}
}

// ruleFile is a file of alert rules, as far as amends uses the format.
type ruleFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

var (
	metricNames = regexp.MustCompile(`\bamends_[a-z0-9_]+[a-z0-9]\b`)
	selected    = regexp.MustCompile(`(amends_[a-z_]+)\{([a-z_]+)="([^"]*)"\}`)
	grouped     = regexp.MustCompile(`(max|min) by \(([a-z_, ]+)\) \((?:[a-z]+\()?(amends_[a-z_]+)`)
	over        = regexp.MustCompile(`([a-z]+)\((amends_[a-z_]+)\[\d+m\]\)`)
	mentioned   = regexp.MustCompile(`\$labels\.([a-z_]+)`)
)

// Every alert rule asks for metrics and labels that there are, counts what is a counter and nothing else, and says what to do.
func TestAlertRulesAskForMetricsThatExist(t *testing.T) {
	t.Parallel()
	var file ruleFile
	text := document(t, "deploy/prometheus-rules.yaml")
	if err := yaml.UnmarshalWithOptions([]byte(text), &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	metrics := map[string]telemetry.Metric{}
	for _, m := range telemetry.Metrics() {
		metrics[m.Name] = m
	}
	var table strings.Builder
	table.WriteString("| alert | severity | when | for |\n|---|---|---|---|\n")
	seen := map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if seen[r.Alert] || !regexp.MustCompile(`^Amends[A-Za-z]+$`).MatchString(r.Alert) {
				t.Errorf("%q is no name, or there twice", r.Alert)
			}
			seen[r.Alert] = true
			r.check(t, metrics)
			fmt.Fprintf(&table, "| `%s` | %s | `%s` | %s |\n", r.Alert, r.Labels["severity"], r.Expr, r.For)
		}
	}
	if len(seen) < 12 {
		t.Errorf("%d rules", len(seen))
	}
	generated(t, metricsPage, "alerts", table.String())
	// What status ends with another code than 0 for, and what its code does not tell, has a rule.
	for _, name := range []string{"amends_partition_stopped", "amends_verification_status", "amends_blocked_keys", "amends_source_lag_seconds", "amends_outbox_oldest_age_seconds",
		"amends_view_oldest_age_seconds", "amends_verified_age_seconds", "amends_database_up", "amends_broker_up", "amends_oldest_block_age_seconds", "amends_rejected_records_total"} {
		if !strings.Contains(text, name) {
			t.Errorf("no rule asks for %s", name)
		}
	}
}

// check judges one rule.
func (r *rule) check(t *testing.T, metrics map[string]telemetry.Metric) {
	t.Helper()
	names := metricNames.FindAllString(r.Expr, -1)
	if len(names) == 0 || strings.Count(r.Expr, "(") != strings.Count(r.Expr, ")") {
		t.Errorf("%s: %s", r.Alert, r.Expr)
	}
	labels := []string{"instance", "job"} // which Prometheus adds
	for i, name := range names {
		m, ok := metrics[name]
		if !ok {
			t.Errorf("%s asks for %s, which no scrape holds", r.Alert, name)
		}
		if ranged := over.FindAllStringSubmatch(r.Expr, -1); m.Counter && !slices.ContainsFunc(ranged, func(x []string) bool { return x[1] == "increase" && x[2] == name }) {
			t.Errorf("%s: %s is a counter and not counted", r.Alert, name)
		}
		if i == 0 {
			labels = append(labels, m.Labels...)
		}
	}
	for _, x := range over.FindAllStringSubmatch(r.Expr, -1) {
		if x[1] == "increase" != metrics[x[2]].Counter {
			t.Errorf("%s: %s of %s", r.Alert, x[1], x[2])
		}
	}
	for _, x := range selected.FindAllStringSubmatch(r.Expr, -1) {
		if !slices.Contains(metrics[x[1]].Labels, x[2]) || !slices.Contains([]string{"PASS", "BLOCKED", "INCOMPLETE", "DRIFT", "UNAVAILABLE"}, x[3]) {
			t.Errorf("%s: there is no %s", r.Alert, x[0])
		}
	}
	for _, x := range grouped.FindAllStringSubmatch(r.Expr, -1) {
		labels = strings.Split(x[2], ", ")
		for _, l := range labels {
			if !slices.Contains(metrics[x[3]].Labels, l) {
				t.Errorf("%s: %s has no label %s", r.Alert, x[3], l)
			}
		}
	}
	for _, words := range r.Annotations {
		for _, x := range mentioned.FindAllStringSubmatch(words, -1) {
			if !slices.Contains(labels, x[1]) {
				t.Errorf("%s: no label %s is left to be named", r.Alert, x[1])
			}
		}
	}
	if _, err := time.ParseDuration(r.For); r.For != "" && err != nil {
		t.Errorf("%s: for %s: %v", r.Alert, r.For, err)
	}
	if s := r.Labels["severity"]; s != "page" && s != "warn" || r.Annotations["summary"] == "" || r.Annotations["action"] == "" || len(r.Annotations) != 2 {
		t.Errorf("%s: severity %q, annotations %v", r.Alert, s, r.Annotations)
	}
}
