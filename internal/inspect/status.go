package inspect

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"amends/internal/health"
	"amends/internal/phrase"
)

// WriteJSON writes an answer as one JSON object.
func WriteJSON(w io.Writer, answer any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(answer); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// Headline is the first line of status: the answer.
func Headline(s *health.Status) string {
	line := string(s.State) + "  "
	if s.Why != "" {
		line += phrase.Printable(s.Why) + "; "
	}
	return line + strings.Join(facts(&s.Progress), "; ")
}

// facts are what the first line says of any state.
func facts(p *health.Progress) []string {
	out := []string{"lag " + lag(p.Lag), "outbox " + waiting(p.Outbox)}
	if p.View.Outputs > 0 {
		out = append(out, "view "+waiting(p.View)+" behind")
	}
	out = append(out, phrase.Counted(p.BlockedKeys, "blocked key"), "quarantine "+number64(p.Quarantined), verified(p))
	if p.SourceError != "" {
		out = append(out, "the source topic could not be asked")
	}
	return out
}

// StatusText writes the answer, then one row a partition, then what stopped or is blocked.
func StatusText(out io.Writer, s *health.Status) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%s\n\n", Headline(s))
	if err := partitionTable(w, &s.Progress); err != nil {
		return err
	}
	for _, p := range s.Partitions {
		if p.Stop != nil {
			fmt.Fprintf(w, "\nstopped: partition %d at output offset %d: %s\n  see it with: view show; it stays stopped, and a rebuild makes a new view\n", p.Partition, p.Stop.Offset, phrase.Printable(p.Stop.Reason))
		}
	}
	if s.Verification != nil && s.Verification.Detail != "" {
		fmt.Fprintf(w, "\nlast verification: %s\n", phrase.Printable(s.Verification.Detail))
	}
	if err := blockedTable(w, &s.Progress); err != nil {
		return err
	}
	if s.SourceError != "" {
		fmt.Fprintf(w, "\nlag unknown: %s\n", phrase.Printable(s.SourceError))
	}
	return w.Flush()
}

func partitionTable(out io.Writer, p *health.Progress) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "PARTITION\tFRONTIER\tSOURCE END\tLAG\tOUTBOX\tVIEW\tRELAY HELD BY\tVIEW HELD BY\tSTATE\n")
	for i := range p.Partitions {
		one := &p.Partitions[i]
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", one.Partition, one.Frontier, number64(one.End), lag(one.Lag), waiting(one.Outbox),
			waiting(one.Unapplied), holder(one.Relay), holder(one.View), partitionState(one))
	}
	return w.Flush()
}

func blockedTable(out io.Writer, p *health.Progress) error {
	if len(p.Blocked) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "\nBLOCKED KEY\tLOCATION\tFOR\tSINCE\tBY RECORD\tREASONS\n")
	for i := range p.Blocked {
		b := &p.Blocked[i]
		age, at, record := "unknown", "unknown", b.Cause
		if b.Since != nil {
			age, at, record = health.Age(b.Since.AgeSeconds), b.Since.At.Format("2006-01-02 15:04:05Z"), b.Since.Record
			if b.Since.Longer {
				age = "over " + age
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", Name(b.Item), Name(b.Location), age, at, coordinates(record), Reasons(b.Status))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if rest := p.BlockedKeys - int64(len(p.Blocked)); rest > 0 {
		fmt.Fprintf(out, "and %d more; diagnostics lists them with the records that resolve them\n", rest)
	}
	return nil
}

func partitionState(p *health.Partition) string {
	switch {
	case p.Stop != nil:
		return "stopped"
	case p.View == nil:
		return "not bound"
	case p.Held:
		return "an open transaction"
	case p.Lag.Records == nil:
		return "lag unknown"
	case *p.Lag.Records == 0 && p.Outbox.Outputs == 0 && p.Unapplied.Outputs == 0:
		return "up to date"
	}
	return "behind"
}

func holder(d *health.Delivery) string {
	switch {
	case d == nil:
		return "-"
	case d.Holder == "":
		return "nobody"
	}
	return Name(d.Holder)
}

func lag(l health.Lag) string {
	if l.Records == nil {
		return "unknown"
	}
	if *l.Records == 0 {
		return "0"
	}
	text := phrase.Counted(*l.Records, "record") + ", "
	switch {
	case l.Seconds == nil:
		return text + "age unknown"
	case l.LeastSeconds:
		text += "at least "
	}
	return text + health.Age(*l.Seconds)
}

func waiting(w health.Waiting) string {
	if w.Outputs == 0 {
		return "0"
	}
	return phrase.Counted(w.Outputs, "output") + ", " + health.Age(w.Seconds)
}

// verified says what was proven last, and how old that is.
func verified(p *health.Progress) string {
	if a := p.Audit; health.AuditedLast(p) {
		age := "never equal"
		if a.AgeSeconds != nil {
			age = "equal " + health.Age(*a.AgeSeconds) + " ago"
		}
		return "audit " + a.Status + ", " + age
	}
	v := p.Verification
	if v == nil {
		return "never verified"
	}
	how := "verified"
	if v.Audit {
		how = "audited"
	}
	return fmt.Sprintf("%s %s %s ago", how, v.Status, health.Age(v.AgeSeconds))
}

func number64(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return strconv.FormatInt(*n, 10)
}

func coordinates(c health.Cause) string {
	return fmt.Sprintf("%d/%d %s r%d", c.Partition, c.Offset, Name(c.TxnID), c.Revision)
}
