package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"amends/internal/inspect"
	"amends/internal/ledger"
	"amends/internal/phrase"
	"amends/internal/store"
	"amends/internal/verify"
)

// Headline is the answer of a verification in one line, with quantities at the namespace's scale (S2).
func Headline(r *verify.Report, scale int32) string {
	switch r.Status {
	case verify.Pass:
		return fmt.Sprintf("PASS  %s, %s; an independent recomputation agrees", phrase.Counted(r.SourceRecords, "source record"), phrase.Counted(r.Messages, "message"))
	case verify.Blocked:
		return fmt.Sprintf("BLOCKED  %s blocked; everything else agrees with an independent recomputation", phrase.Counted(int64(len(r.Blocked)), "key"))
	case verify.Drift:
		return fmt.Sprintf("DRIFT  %s; the first: %s", phrase.Counted(r.Differences, "difference"), difference(r.First, scale))
	}
	if len(r.Reasons) == 0 {
		return string(r.Status)
	}
	return fmt.Sprintf("%s  %s", r.Status, reason(r.Reasons[0]))
}

func reason(x verify.Reason) string {
	var b strings.Builder
	b.WriteString(string(x.Code))
	if x.Partition >= 0 {
		fmt.Fprintf(&b, " partition %d", x.Partition)
	}
	if x.Offset >= 0 {
		fmt.Fprintf(&b, " offset %d", x.Offset)
	}
	if x.Sequence >= 0 {
		fmt.Fprintf(&b, " sequence %d", x.Sequence)
	}
	return b.String() + ": " + x.Detail
}

func difference(d *verify.Difference, scale int32) string {
	s := fmt.Sprintf("%s partition %d", d.What, d.Partition)
	if d.Offset >= 0 {
		s += fmt.Sprintf(" offset %d", d.Offset)
	}
	if d.ID.Kind != 0 {
		s += fmt.Sprintf(" %v %s %s", d.ID.Kind, inspect.Name(d.ID.Key.Item), inspect.Name(d.ID.Key.Location))
		if d.ID.Kind != ledger.TrustStatus {
			s += " " + d.ID.Day.String()
		}
	}
	s += ": " + d.Detail
	if d.Expected != nil || d.Actual != nil {
		s += fmt.Sprintf(" (expected %s, actual %s)", side(d.Expected, scale), side(d.Actual, scale))
	}
	return s
}

// side writes one side of a difference for people.
func side(s *verify.Side, scale int32) string {
	if s == nil {
		return "no row"
	}
	text := "no output"
	if s.Present && s.Payload != nil {
		text = value(s.Payload, scale)
	} else if s.Cause != nil {
		text = "withdrawn"
	}
	if s.Version > 0 {
		text += fmt.Sprintf(" version %d", s.Version)
	}
	for i, c := range s.Sources {
		lead := ", "
		if i == 0 {
			lead = " by "
		}
		text += fmt.Sprintf("%s%d/%d %s r%d", lead, c.Partition, c.Offset, inspect.Name(c.TxnID), c.Revision)
	}
	return text
}

// value writes what an output states, as the view is shown.
func value(p *verify.Payload, scale int32) string {
	if p.Kind == ledger.TrustStatus && p.Status == nil {
		return "no status"
	}
	return inspect.Value(&store.ViewRow{ID: ledger.OutputID{Kind: p.Kind}, Present: true, Close: p.Close, Previous: p.Previous, Threshold: p.Threshold, Status: p.Status}, scale)
}

// Text writes a report for people, with quantities at the namespace's scale; its first line is the answer.
func Text(out io.Writer, r *verify.Report, scale int32) error {
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, Headline(r, scale))
	mode := r.Mode
	if r.Deep {
		mode += ", deep"
	}
	fmt.Fprintf(w, "  namespace %s, %s, %d view rows, %d source records, %d rejected, %.2f s\n", r.Namespace, mode, r.Outputs, r.SourceRecords, r.Rejected, r.Elapsed.Seconds())
	for _, b := range r.Boundary {
		fmt.Fprintf(w, "  partition %d: source below %d, output below %d\n", b.Partition, b.SourceEnd, b.OutputEnd)
	}
	for _, x := range r.Reasons {
		fmt.Fprintf(w, "  %s\n", reason(x))
	}
	for _, k := range r.Blocked {
		fmt.Fprintf(w, "  blocked: %s %s: %s\n", inspect.Name(k.Key.Item), inspect.Name(k.Key.Location), inspect.Reasons(k.Status))
	}
	return w.Flush()
}
