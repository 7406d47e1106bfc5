package inspect

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"amends/internal/diagnose"
	"amends/internal/health"
	"amends/internal/ledger"
	"amends/internal/phrase"
)

// How much of a rejected record's bytes text shows; JSON and the export hold all.
const (
	shownText = 240
	shownHex  = 48
)

// DiagnosticsText writes the answer, then a section each for rejected records, what blocks keys, and settled conflicts. Lines that
// resolve something stand alone, as source load takes them. again is the command that asks for more.
func DiagnosticsText(out io.Writer, r *diagnose.Report, only diagnose.Section, again string) error {
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, diagnosticsHeadline(r))
	if only == diagnose.All || only == diagnose.Rejections {
		rejectedText(w, r, again)
	}
	if only == diagnose.All || only == diagnose.Current {
		for i := range r.Current {
			problemText(w, &r.Current[i], r.Scale)
		}
		next(w, again, diagnose.Current, r.CurrentNext)
	}
	if only == diagnose.All || only == diagnose.Superseded {
		for i := range r.Superseded {
			conflictText(w, &r.Superseded[i], r.Scale)
		}
		next(w, again, diagnose.Superseded, r.SupersededNext)
	}
	return w.Flush()
}

func diagnosticsHeadline(r *diagnose.Report) string {
	if r.Rejected.Total == 0 && r.BlockedKeys == 0 && r.ConflictRecords == 0 {
		return "nothing rejected, no conflict, no blocked key"
	}
	codes := make([]string, len(r.Rejected.Codes))
	for i, c := range r.Rejected.Codes {
		codes[i] = fmt.Sprintf("%s %d", c.Code, c.Records)
	}
	line := phrase.Counted(r.Rejected.Total, "record") + " rejected"
	if len(codes) > 0 {
		line += " (" + strings.Join(codes, ", ") + ")"
	}
	return fmt.Sprintf("%s; %s; %s in conflict", line, phrase.Counted(r.BlockedKeys, "blocked key"), phrase.Counted(r.ConflictRecords, "record"))
}

// next says how to ask for the next page.
func next(w io.Writer, again string, section diagnose.Section, place string) {
	if place != "" {
		fmt.Fprintf(w, "\nmore: %s -only %s -after %s\n", again, section, place)
	}
}

func rejectedText(w io.Writer, r *diagnose.Report, again string) {
	for i := range r.Rejected.Records {
		one := &r.Rejected.Records[i]
		e := &one.Evidence
		fmt.Fprintf(w, "\nrejected %d/%d  %v", one.Partition, one.Offset, one.Code)
		if one.Decided != nil {
			fmt.Fprintf(w, "  decided %s", one.Decided.Format("2006-01-02 15:04:05Z"))
		}
		if one.Broker != nil {
			fmt.Fprintf(w, "  sent %s", one.Broker.Format("2006-01-02 15:04:05Z"))
		}
		fmt.Fprintln(w)
		bytesText(w, "key", e.Key, e.KeyLength)
		bytesText(w, "value", e.Value, e.ValueLength)
	}
	next(w, again, diagnose.Rejections, r.Rejected.Next)
}

// bytesText writes bytes as text and as hex, and says what is not shown and what is not kept.
func bytesText(w io.Writer, name string, b []byte, length int64) {
	if b == nil {
		fmt.Fprintf(w, "  %-5s  absent\n", name)
		return
	}
	fmt.Fprintf(w, "  %-5s  %s%s\n", name, quoted(b), beyond(len(b), shownText))
	if len(b) > 0 {
		fmt.Fprintf(w, "         % x%s\n", b[:min(len(b), shownHex)], beyond(len(b), shownHex))
	}
	if int64(len(b)) != length {
		fmt.Fprintf(w, "         of %d bytes the first %d are kept\n", length, len(b))
	}
}

func beyond(n, shown int) string {
	if n <= shown {
		return ""
	}
	return fmt.Sprintf(" and %d bytes more", n-shown)
}

// quoted writes bytes as text: what does not show as itself becomes an escape.
func quoted(b []byte) string {
	if len(b) > shownText {
		b = b[:shownText]
		for i := 1; i < utf8.UTFMax && i < len(b) && !utf8.Valid(b); i++ {
			if r, n := utf8.DecodeLastRune(b); r != utf8.RuneError || n != 1 {
				break
			}
			b = b[:len(b)-1]
		}
	}
	return strconv.Quote(string(b))
}

func problemText(w io.Writer, p *diagnose.Problem, scale int32) {
	fmt.Fprintf(w, "\nblocked %s %s  %s", Name(p.Item), Name(p.Location), p.Code)
	what := "its records"
	switch {
	case p.TxnID != "":
		fmt.Fprintf(w, " %s r%d", Name(p.TxnID), p.Revision)
		what = "to make this one apply, load:"
	case p.Day != "":
		fmt.Fprintf(w, " %s", p.Day)
		what = "to withdraw this count, load:"
	}
	if p.Since != nil {
		fmt.Fprintf(w, "  the key for %s, since %d/%d", health.Age(p.Since.AgeSeconds), p.Since.Record.Partition, p.Since.Record.Offset)
	}
	fmt.Fprintln(w)
	candidatesText(w, p.Candidates, scale, what)
	if p.Code == ledger.Unrepresentable.String() {
		fmt.Fprintf(w, "  no close of that day fits 64 bits: amend or cancel one of the movements until then\n")
	}
	if p.More > 0 {
		fmt.Fprintf(w, "  and %s of this key beyond those named\n", phrase.Counted(p.More, "ambiguous transaction"))
	}
}

func conflictText(w io.Writer, c *diagnose.Conflict, scale int32) {
	how := fmt.Sprintf("settled by r%d", c.Highest)
	if c.Current {
		how = "current: no higher revision settles it"
	}
	fmt.Fprintf(w, "\nconflict %s %s  %s r%d  %s\n", Name(c.Item), Name(c.Location), Name(c.TxnID), c.Revision, how)
	candidatesText(w, c.Candidates, scale, "to make this one apply, load:")
}

// candidatesText writes a line a candidate, and behind it, alone on its line, the record that resolves it.
func candidatesText(out io.Writer, all []diagnose.Candidate, scale int32, what string) {
	for i := range all {
		c := &all[i]
		payload := c.State
		if c.Quantity != nil {
			payload = fmt.Sprintf("%s %s on %s", c.Kind, phrase.Quantity(*c.Quantity, scale), c.Day)
		}
		w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		fmt.Fprintf(w, "  %d/%d\t%s r%d\t%s\t%s\tsent %s", c.Partition, c.Offset, Name(c.TxnID), c.Revision, payload, c.Class, c.Broker.Format("2006-01-02 15:04:05Z"))
		if c.Records > 1 {
			fmt.Fprintf(w, "\tsaid %d times", c.Records)
		}
		fmt.Fprintln(w)
		w.Flush()
		if c.Resolve != "" {
			fmt.Fprintf(out, "    %s\n%s\n", what, asciiJSON(c.Resolve))
		}
	}
}

// asciiJSON writes a JSON text so that nothing in it can deceive a terminal: what is not plain ASCII becomes \u escapes, which mean
// the same record.
func asciiJSON(line string) string {
	var b strings.Builder
	for _, r := range line {
		switch {
		case r < 0x7f:
			b.WriteRune(r)
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
