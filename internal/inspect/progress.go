package inspect

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"amends/internal/health"
	"amends/internal/phrase"
)

// Progress is the answer of inspect.
type Progress struct {
	Schema int    `json:"schema"`
	Scope  string `json:"scope"`
	*health.Progress
}

// ProgressJSON writes the progress as one JSON object.
func ProgressJSON(w io.Writer, p *health.Progress) error {
	return WriteJSON(w, &Progress{Schema: 1, Scope: scope, Progress: p})
}

// ProgressText writes the progress as tables: positions and what waits, what commits cost, and the latest of them.
func ProgressText(out io.Writer, p *health.Progress) error {
	w := bufio.NewWriter(out)
	for i, f := range facts(p) {
		if i > 0 {
			fmt.Fprint(w, "; ")
		}
		fmt.Fprint(w, f)
	}
	fmt.Fprintf(w, "\n%s as of %s: %s\n\n", p.Namespace, p.At.Format("2006-01-02 15:04:05.000Z"), scope)
	if err := partitionTable(w, p); err != nil {
		return err
	}
	positionTable(w, p)
	workTable(w, p)
	for i := range p.Partitions {
		sampleTable(w, &p.Partitions[i])
	}
	if err := blockedTable(w, p); err != nil {
		return err
	}
	if p.SourceError != "" {
		fmt.Fprintf(w, "\nlag unknown: %s\n", phrase.Printable(p.SourceError))
	}
	return w.Flush()
}

func positionTable(out io.Writer, p *health.Progress) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "\nPARTITION\tEPOCH\tDECIDED\tPUBLISHED\tAPPLIED\tOUTPUT FRONTIER\tRELAY TERM\tVIEW TERM\n")
	for i := range p.Partitions {
		one := &p.Partitions[i]
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", one.Partition, one.Epoch, one.Sequence, of(one.Relay, sequence), of(one.View, sequence),
			of(one.View, output), of(one.Relay, term), of(one.View, term))
	}
	w.Flush()
}

func sequence(d *health.Delivery) int64 { return d.Sequence }
func output(d *health.Delivery) int64   { return d.Output }
func term(d *health.Delivery) int64     { return d.Term }

func of(d *health.Delivery, field func(*health.Delivery) int64) string {
	if d == nil {
		return "-"
	}
	return strconv.FormatInt(field(d), 10)
}

const workHeads = "RECORDS\tREJECTED\tREWIND DAYS\tREFOLDED DAYS\tOUTPUTS\tWITHDRAWN\tLOCK\tBEFORE COMMIT"

// workTable writes what all commits cost together, and the last one. What was not measured is unknown.
func workTable(out io.Writer, p *health.Progress) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "\nPARTITION\tWORK\tCOMMITS\t"+workHeads+"\n")
	for i := range p.Partitions {
		m := p.Partitions[i].Measurements
		fmt.Fprintf(w, "%d\tall\t%s\t%s\n", p.Partitions[i].Partition, commits(m), cells(m.Total))
		last := cells(m.Last)
		if m.Last == nil && m.Total != nil {
			last = strings.Repeat("-\t", 7) + "-" // there was no commit yet
		}
		fmt.Fprintf(w, "%d\tlast\t\t%s\n", p.Partitions[i].Partition, last)
	}
	w.Flush()
	for i := range p.Partitions {
		if note := earlier(&p.Partitions[i]); note != "" {
			fmt.Fprintf(out, "partition %d: %s\n", p.Partitions[i].Partition, note)
		}
	}
}

// commits is how many were measured, unknown where none was of those that must have been.
func commits(m *health.Measurements) string {
	if m.Total == nil {
		return "unknown"
	}
	return strconv.FormatInt(m.Commits, 10)
}

// earlier says what the totals do not cover, "" where they cover everything.
func earlier(p *health.Partition) string {
	m := p.Measurements
	switch {
	case m.Total == nil:
		return "nothing has been measured: what was done until now is unknown"
	case m.Complete:
		return ""
	}
	return fmt.Sprintf("%s measured below offset %d; of other offsets (earlier history, gaps) the work is unknown", phrase.Counted(m.Total.Records, "record"), p.Frontier)
}

func cells(s *health.Sample) string {
	if s == nil {
		return "unknown\tunknown\tunknown\tunknown\tunknown\tunknown\tunknown\tunknown"
	}
	return fmt.Sprintf("%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s", s.Records, s.Rejected, s.Rewind, s.Refolded, s.Changed, s.Withdrawn, nanos(s.Lock), nanos(s.PreCommit))
}

func sampleTable(out io.Writer, p *health.Partition) {
	if len(p.Measurements.Recent) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "\nthe latest commits of partition %d, oldest first\n%s\n", p.Partition, workHeads)
	for i := range p.Measurements.Recent {
		fmt.Fprintln(w, cells(&p.Measurements.Recent[i]))
	}
	w.Flush()
}

// nanos writes nanoseconds for people.
func nanos(n int64) string {
	d := time.Duration(n)
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", n)
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(n)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(n)/1e6)
	}
	return health.Age(d.Seconds())
}
