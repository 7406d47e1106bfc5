package bench

import (
	"fmt"
	"io"
	"time"

	"amends/internal/workload"
)

// Speed is how many records a pipeline brought from the source topic into its view, and how long that took.
type Speed struct {
	Records int64         `json:"records"`
	Outputs int64         `json:"outputs"`
	Elapsed time.Duration `json:"elapsed_ns"`
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
}

// WriteText writes the report as a table for people: the ratios first, since they are what means something.
func (r *Report) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "whole path, records/s; PostgreSQL %s, broker %s, fsync on for both\n%-14s %12s %13s %10s %10s %10s %10s %9s\n", r.PostgreSQL, r.Broker,
		"workload", "over serial", "over trigger", "amends", "serial", "trigger", "history", "compared")
	for _, x := range r.Results {
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%-14s %11.1fx %12.2fx %10.0f %10.0f %10.0f %10d %9d\n", x.Workload, x.OverSerial(), x.OverTrigger(),
			x.Amends.PerSecond(), x.Serial.PerSecond(), x.Trigger.PerSecond(), x.History, x.Compared)
	}
	return err
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

// Options say what to measure.
type Options struct {
	Laws    []workload.Law
	Records int           // measured records a workload
	Keys    int           // stock keys, 0 for the workload's own number
	Limit   time.Duration // for each peer; a slower one is measured over what it did
	Seed    uint64
	Dir     string // for the services' data; made, and removed at the end
	BinDir  string // PostgreSQL's programs; "" looks for them
	Say     func(string)
}

// Quick are the options of -quick: two workloads, 20,000 records or 30 s each.
func Quick() Options {
	return Options{Laws: []workload.Law{workload.Short, workload.LongDeep}, Records: 20_000, Limit: 30 * time.Second}
}

// Full are the options without -quick: every workload, 60,000 records or 60 s each.
func Full() Options {
	return Options{Laws: []workload.Law{workload.Short, workload.LongShallow, workload.LongDeep}, Records: 60_000, Limit: 60 * time.Second}
}
