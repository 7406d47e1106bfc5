package telemetry

import (
	"slices"
	"strconv"
	"time"

	"amends/internal/health"
)

// Metric is one metric as people and alert rules know it.
type Metric struct {
	Name    string
	Help    string   // what it says, in the unit that the name ends with
	Absent  string   // when a scrape is without it although the database was read, "" for never
	Labels  []string // in their order
	Counter bool     // otherwise a gauge
}

// Metrics lists everything that a scrape may hold, the metrics of the Go runtime and of the process aside.
func Metrics() []Metric {
	var all []Metric
	for _, f := range families() {
		all = append(all, f.Metric)
	}
	return all
}

// family is a metric with what gives its samples; a value that is not known is not given.
type family struct {
	of func(*reading, emit)
	Metric
}

// emit takes one sample, its labels in the order of the metric's.
type emit func(value float64, labels ...string)

// reading is what one scrape found. progress is nil where the database could not be read.
type reading struct {
	progress  *health.Progress
	namespace string
	build     Build
	asked     bool // whether the broker was asked
	answered  bool // and whether it answered
}

var (
	whole = []string{"namespace"}
	split = []string{"namespace", "partition"}
)

// families is the table of all metrics, in the order of the documentation.
func families() []family { return slices.Concat(services(), exceptions(), stages(), proof(), work()) }

func services() []family {
	return []family{
		{Metric: Metric{Name: "amends_build_info", Labels: []string{"version", "revision", "go_version"}, Help: "Always 1; what this process was built from."},
			of: func(r *reading, to emit) { to(1, r.build.Version, r.build.Revision, r.build.Go) }},
		{Metric: Metric{Name: "amends_database_up", Labels: whole, Help: "1 if the namespace could be read from the database for this scrape, else 0; at 0 nothing else is told of it."},
			of: func(r *reading, to emit) { to(truth(r.progress != nil), r.namespace) }},
		{Metric: Metric{Name: "amends_broker_up", Labels: whole, Absent: "while the process waits for its services at the start",
			Help: "1 if the source topic is the right one and its broker said for this scrape where it ends, else 0."},
			of: func(r *reading, to emit) {
				if r.asked {
					to(truth(r.answered), r.namespace)
				}
			}},
	}
}

func exceptions() []family {
	return []family{
		{Metric: Metric{Name: "amends_blocked_keys", Labels: split, Help: "Keys that contradict themselves: their balances are frozen and not trusted."},
			of: each(func(p *health.Partition) *float64 { return number(p.BlockedKeys) })},
		{Metric: Metric{Name: "amends_oldest_block_age_seconds", Labels: whole, Absent: "while no key is blocked",
			Help: "For how long the key that is blocked longest has been; where more than 100 keys are, of the first 100."},
			of: one(oldestBlock)},
		{Metric: Metric{Name: "amends_rejected_records_total", Labels: split, Counter: true, Absent: unmeasured, Help: "Source records that commits put into quarantine."},
			of: total(func(s *health.Sample) float64 { return float64(s.Rejected) })},
		{Metric: Metric{Name: "amends_partition_stopped", Labels: split, Help: "1 if a protocol violation stopped the view of the partition for ever, else 0."},
			of: each(func(p *health.Partition) *float64 { return known(truth(p.Stop != nil)) })},
		{Metric: Metric{Name: "amends_protocol_errors_total", Labels: split, Counter: true, Help: "Protocol violations that the view stored; a partition stops at its first."},
			of: each(func(p *health.Partition) *float64 { return known(truth(p.Stop != nil && p.Stop.Reason != "")) })},
	}
}

// Why a sample of a partition may be absent.
const (
	unmeasured = "until the partition's first measured commit"
	unasked    = "while the broker cannot be asked"
	unbound    = "before the output topic is bound"
)

func stages() []family {
	return []family{
		{Metric: Metric{Name: "amends_source_frontier", Labels: split, Help: "The next source offset to process: everything below is decided and committed."},
			of: each(func(p *health.Partition) *float64 { return number(p.Frontier) })},
		{Metric: Metric{Name: "amends_source_end", Labels: split, Absent: unasked, Help: "The offset at which the source partition ends."},
			of: each(func(p *health.Partition) *float64 { return optional(p.End) })},
		{Metric: Metric{Name: "amends_source_lag_records", Labels: split, Absent: unasked, Help: "Source offsets that no commit covers yet."},
			of: each(func(p *health.Partition) *float64 { return optional(p.Lag.Records) })},
		{Metric: Metric{Name: "amends_source_lag_seconds", Labels: split, Absent: unasked + ", or the oldest record was not read in time",
			Help: "Age of the oldest source record that no commit covers yet, by its own timestamp; 0 if there is none."},
			of: each(func(p *health.Partition) *float64 { return p.Lag.Seconds })},
		{Metric: Metric{Name: "amends_outbox_outputs", Labels: split, Help: "Outputs that are decided and not delivered to the output topic yet."},
			of: each(func(p *health.Partition) *float64 { return number(p.Outbox.Outputs) })},
		{Metric: Metric{Name: "amends_outbox_oldest_age_seconds", Labels: split, Help: "For how long the oldest undelivered output waits, by the database's clock; 0 if there is none."},
			of: each(func(p *health.Partition) *float64 { return known(p.Outbox.Seconds) })},
		{Metric: Metric{Name: "amends_view_pending_outputs", Labels: split, Absent: unbound, Help: "Outputs that are delivered and not in the view yet."},
			of: each(viewed(func(w health.Waiting) float64 { return float64(w.Outputs) }))},
		{Metric: Metric{Name: "amends_view_oldest_age_seconds", Labels: split, Absent: unbound, Help: "For how long the oldest delivered output that the view lacks waits, by the database's clock; 0 if there is none."},
			of: each(viewed(func(w health.Waiting) float64 { return w.Seconds }))},
	}
}

func proof() []family {
	return []family{
		{Metric: Metric{Name: "amends_verification_status", Labels: []string{"namespace", "status"}, Absent: unverified,
			Help: "1 for the status of the last verification or audit cycle, 0 for the other statuses; a DRIFT stands until something refutes it, as in amends status."},
			of: func(r *reading, to emit) {
				if r.progress == nil {
					return
				}
				if last, _ := verdict(r.progress); last != "" {
					for _, s := range statuses {
						to(truth(s == last), r.namespace, s)
					}
				}
			}},
		{Metric: Metric{Name: "amends_verification_age_seconds", Labels: whole, Absent: unverified, Help: "How long ago the last verification or audit cycle ended."},
			of: one(func(p *health.Progress) *float64 {
				last, at := verdict(p)
				if last == "" {
					return nil
				}
				return known(max(0, p.At.Sub(at).Seconds()))
			})},
		{Metric: Metric{Name: "amends_verified_age_seconds", Labels: whole, Absent: "until everything was found equal once",
			Help: "The age of trust: since when the partition that waits longest was found equal by an audit, or, if that is younger, the last verification ended with PASS."},
			of: one(verifiedAge)},
	}
}

const unverified = "before the first verification or audit cycle"

// statuses are those of a verification (S10).
var statuses = []string{"PASS", "BLOCKED", "INCOMPLETE", "DRIFT", "UNAVAILABLE"}

func work() []family {
	return []family{
		{Metric: Metric{Name: "amends_commits_total", Labels: split, Counter: true, Absent: unmeasured, Help: "Transactions that committed decisions."},
			of: each(func(p *health.Partition) *float64 {
				if measured(p) == nil {
					return nil
				}
				return number(p.Measurements.Commits)
			})},
		{Metric: Metric{Name: "amends_committed_records_total", Labels: split, Counter: true, Absent: unmeasured, Help: "Source records that commits decided, the rejected ones included."},
			of: total(func(s *health.Sample) float64 { return float64(s.Records) })},
		{Metric: Metric{Name: "amends_output_versions_total", Labels: split, Counter: true, Absent: unmeasured, Help: "Versions of outputs that commits decided, withdrawals included."},
			of: total(func(s *health.Sample) float64 { return float64(s.Changed) })},
		{Metric: Metric{Name: "amends_withdrawals_total", Labels: split, Counter: true, Absent: unmeasured, Help: "Withdrawals among the versions of outputs that commits decided."},
			of: total(func(s *health.Sample) float64 { return float64(s.Withdrawn) })},
		{Metric: Metric{Name: "amends_refolded_closes_total", Labels: split, Counter: true, Absent: unmeasured,
			Help: "Closes that decisions computed, those behind a corrected day included."},
			of: total(func(s *health.Sample) float64 { return float64(s.Refolded) })},
		{Metric: Metric{Name: "amends_commit_lock_seconds_total", Labels: split, Counter: true, Absent: unmeasured, Help: "Time that commits waited for the lock of the partition's row."},
			of: total(func(s *health.Sample) float64 { return time.Duration(s.Lock).Seconds() })},
		{Metric: Metric{Name: "amends_commit_prepare_seconds_total", Labels: split, Counter: true, Absent: unmeasured, Help: "Time from the begin of transactions that committed decisions to the sending of COMMIT."},
			of: total(func(s *health.Sample) float64 { return time.Duration(s.PreCommit).Seconds() })},
	}
}

// one gives a value of the namespace.
func one(value func(*health.Progress) *float64) func(*reading, emit) {
	return func(r *reading, to emit) {
		if r.progress == nil {
			return
		}
		if v := value(r.progress); v != nil {
			to(*v, r.namespace)
		}
	}
}

// each gives a value of each partition.
func each(value func(*health.Partition) *float64) func(*reading, emit) {
	return func(r *reading, to emit) {
		if r.progress == nil {
			return
		}
		for i := range r.progress.Partitions {
			p := &r.progress.Partitions[i]
			if v := value(p); v != nil {
				to(*v, r.namespace, strconv.Itoa(int(p.Partition)))
			}
		}
	}
}

// total gives what a partition's commits counted.
func total(value func(*health.Sample) float64) func(*reading, emit) {
	return each(func(p *health.Partition) *float64 {
		if s := measured(p); s != nil {
			return known(value(s))
		}
		return nil
	})
}

func measured(p *health.Partition) *health.Sample {
	if p.Measurements == nil {
		return nil
	}
	return p.Measurements.Total
}

func viewed(value func(health.Waiting) float64) func(*health.Partition) *float64 {
	return func(p *health.Partition) *float64 {
		if p.View == nil {
			return nil
		}
		return known(value(p.Unapplied))
	}
}

func oldestBlock(p *health.Progress) (oldest *float64) {
	for i := range p.Blocked {
		if since := p.Blocked[i].Since; since != nil && (oldest == nil || since.AgeSeconds > *oldest) {
			oldest = &since.AgeSeconds
		}
	}
	return oldest
}

// verdict is what proof said last, "" before the first. A drift outweighs what looked later and less closely (health.Judge).
func verdict(p *health.Progress) (status string, at time.Time) {
	v := p.Verification
	switch {
	case health.AuditedLast(p) && (v == nil || v.Status != "DRIFT"):
		return p.Audit.Status, p.Audit.Checked
	case v != nil:
		return v.Status, v.Finished
	}
	return "", time.Time{}
}

func verifiedAge(p *health.Progress) (age *float64) {
	if p.Audit != nil {
		age = p.Audit.AgeSeconds
	}
	if v := p.Verification; v != nil && v.Status == "PASS" && (age == nil || v.AgeSeconds < *age) {
		age = &v.AgeSeconds
	}
	return age
}

func known(v float64) *float64 { return &v }

func number(n int64) *float64 { return known(float64(n)) }

func optional(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return number(*n)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
