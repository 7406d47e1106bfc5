package bench

import (
	"fmt"
	"io"
	"time"

	"amends/internal/workload"
)

// Speed is how many records a pipeline brought from the source topic into its view, how long that took, and what it cost
// in processor time of the pipeline, the broker and the server together (0: not known).
type Speed struct {
	Records   int64         `json:"records"`
	Outputs   int64         `json:"outputs"`
	Elapsed   time.Duration `json:"elapsed_ns"`
	Processor time.Duration `json:"processor_ns"`
}

// PerSecond returns records a second, 0 before any time has passed.
func (s Speed) PerSecond() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Records) / s.Elapsed.Seconds()
}

// Result is one workload's: all three pipelines over the same records, broker and server, fsync on.
type Result struct {
	Workload string `json:"workload"`
	History  int64  `json:"history"`  // records in every store before the clocks started
	Compared int64  `json:"compared"` // outputs that amends and the baseline published alike
	Amends   Speed  `json:"amends"`
	Serial   Speed  `json:"serial"`
	Trigger  Speed  `json:"trigger"`
}

// OverSerial returns how many times the baseline's records a second amends reached, on the whole path.
func (r Result) OverSerial() float64 { return ratio(r.Amends, r.Serial) }

// OverTrigger returns the same over the trigger, which publishes nothing.
func (r Result) OverTrigger() float64 { return ratio(r.Amends, r.Trigger) }

// CheaperThanSerial returns how many times the baseline's records a second of processor time amends brought through: on a
// busy machine the fairer ratio.
func (r Result) CheaperThanSerial() float64 { return cheaper(r.Amends, r.Serial) }

// CheaperThanTrigger returns the same of the trigger.
func (r Result) CheaperThanTrigger() float64 { return cheaper(r.Amends, r.Trigger) }

func cheaper(a, b Speed) float64 {
	return ratio(Speed{Records: a.Records, Elapsed: a.Processor}, Speed{Records: b.Records, Elapsed: b.Processor})
}

func ratio(a, b Speed) float64 {
	if b.PerSecond() == 0 {
		return 0
	}
	return a.PerSecond() / b.PerSecond()
}

// Report is a whole run.
type Report struct {
	Schema     int      `json:"schema"`
	PostgreSQL string   `json:"postgresql"`
	Broker     string   `json:"broker"`
	Results    []Result `json:"results"`
	// The worker alone, and what COPY of a narrow table does beside it.
	Worker      []Worker     `json:"worker,omitempty"`
	Copy        Speed        `json:"copy"`
	Corrections []Correction `json:"corrections,omitempty"`
	Takeover    *Takeover    `json:"takeover,omitempty"`
}

// WriteText writes the report as tables for people: the ratios first, since they are what means something.
func (r *Report) WriteText(w io.Writer) error {
	p := &printer{w: w}
	if len(r.Results) > 0 {
		p.line("whole path, records/s; PostgreSQL %s, broker %s, fsync on for both\n%-14s %12s %13s %10s %10s %10s %10s %9s", r.PostgreSQL, r.Broker,
			"workload", "over serial", "over trigger", "amends", "serial", "trigger", "history", "compared")
	}
	for _, x := range r.Results {
		p.line("%-14s %11.1fx %12.2fx %10.0f %10.0f %10.0f %10d %9d", x.Workload, x.OverSerial(), x.OverTrigger(),
			x.Amends.PerSecond(), x.Serial.PerSecond(), x.Trigger.PerSecond(), x.History, x.Compared)
	}
	for _, x := range r.Results {
		if x.Amends.Processor > 0 {
			p.line("%-14s %11.1fx %12.2fx by processor time", x.Workload, x.CheaperThanSerial(), x.CheaperThanTrigger())
		}
	}
	if len(r.Worker) > 0 {
		p.line("worker alone; COPY of a narrow table %.0f rows/s\n%-14s %12s %10s %12s %12s %12s", r.Copy.PerSecond(),
			"workload", "of COPY", "records/s", "outputs/s", "WAL a record", "an output")
	}
	for _, x := range r.Worker {
		p.line("%-14s %11.2fx %10.0f %12.0f %12.0f %12.0f", x.Workload, ratio(x.Speed, r.Copy), x.PerSecond(),
			float64(x.Outputs)/x.Elapsed.Seconds(), float64(x.WAL)/float64(x.Records), float64(x.WAL)/float64(x.Outputs))
	}
	for _, c := range r.Corrections {
		p.line("one correction under %d later movements on %d days, %d outputs, committed: median %.1f ms, worst of %d %.1f ms",
			c.Movements, c.Days, c.Outputs, milliseconds(c.Median), c.Runs, milliseconds(c.Worst))
	}
	if t := r.Takeover; t != nil {
		p.line("takeover with %d transactions behind: claim to first commit, median of %d: %.1f ms with one record, %.1f ms with %d records of %d keys",
			t.Transactions, t.Runs, milliseconds(t.One), milliseconds(t.Batch), t.BatchRecords, t.Keys)
	}
	return p.err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// printer writes lines until one fails.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, values ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", values...)
	}
}

// DifferentError says that amends and a peer did not end with the same.
type DifferentError struct {
	Peer   string
	Detail string
}

// Error names the first difference.
func (e *DifferentError) Error() string {
	return fmt.Sprintf("amends and %s differ: %s", e.Peer, e.Detail)
}

// Part is a part of the report.
type Part string

// The parts.
const (
	Path        Part = "path"       // whole path beside the peers
	WorkerAlone Part = "worker"     // no broker: records/s beside COPY, bytes of WAL
	Corrections Part = "correction" // one correction under many later movements
	Takeovers   Part = "takeover"   // claim to first commit
)

// Parts lists the parts.
func Parts() []Part { return []Part{Path, WorkerAlone, Corrections, Takeovers} }

// Options say what to measure.
type Options struct {
	What         []Part
	Laws         []workload.Law
	Records      int           // measured records a workload; five times as many for the worker alone
	Keys         int           // stock keys, 0 for the workload's own number
	Movements    int           // after the one that is corrected
	Transactions int           // behind a takeover
	Limit        time.Duration // for each peer; a slower one is measured over what it did
	Seed         uint64
	Dir          string // for the services' data; made, and removed at the end
	BinDir       string // PostgreSQL's programs; "" looks for them
	Say          func(string)
}

// Quick are the options of -quick: two workloads, 20,000 records or 30 s each, and the corrections.
func Quick() Options {
	o := Full()
	o.What, o.Laws = []Part{Path, Corrections}, []workload.Law{workload.Short, workload.LongDeep}
	o.Records, o.Limit = 20_000, 30*time.Second
	return o
}

// Full are the options without -quick: every part and workload, 60,000 records or 60 s each.
func Full() Options {
	return Options{What: Parts(), Laws: []workload.Law{workload.Short, workload.LongShallow, workload.LongDeep}, Records: 60_000, Limit: 60 * time.Second,
		Movements: 22_000, Transactions: 1_000_000}
}
