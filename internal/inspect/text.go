package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"amends/internal/ledger"
	"amends/internal/phrase"
	"amends/internal/store"
)

// showText writes what the view holds, then its positions, then what stopped it.
func showText(v *shown, scale int32) error {
	fmt.Fprintf(v.out, "%s: %s\n", v.namespace, scope)
	w := tabwriter.NewWriter(v.out, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "\nOUTPUT\tITEM\tLOCATION\tDAY\tVALUE\tVERSION\tCAUSE\n")
	n := 0
	err := v.rows(every, func(r *store.ViewRow) error {
		n++
		_, err := fmt.Fprintf(w, "%v\t%s\t%s\t%v\t%s\t%d\t%d/%d %s r%d\n", r.ID.Kind, Name(r.ID.Key.Item), Name(r.ID.Key.Location), r.ID.Day,
			Value(r, scale), r.Version, r.Cause.Partition, r.Cause.Offset, Name(r.Cause.TxnID), r.Cause.Revision)
		if n%1000 == 0 && err == nil {
			err = w.Flush() // bounds what the columns wait for
		}
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprint(w, "\nPARTITION\tOUTPUT FRONTIER\tLAST SEQUENCE\tSTATE\n")
	for _, s := range v.states {
		frontier, sequence := position(s)
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\n", s.Partition, frontier, sequence, state(s))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, e := range v.errors {
		fmt.Fprintf(v.out, "\nprotocol error: partition %d offset %d: %s\n  key   %s\n  value %s\n", e.Partition, e.Offset, e.Reason, raw(e.Key), raw(e.Value))
	}
	return nil
}

func state(s store.PartitionState) string {
	switch {
	case s.View == nil:
		return "not bound"
	case s.View.Stopped:
		return "stopped by a protocol error"
	case s.View.Sequence < s.Owned.Sequence:
		return phrase.Counted(int64(s.Owned.Sequence-s.View.Sequence), "output") + " pending"
	}
	return "up to date"
}

// Value writes what a row says of its output for people, quantities at the namespace's scale.
func Value(r *store.ViewRow, scale int32) string {
	switch {
	case !r.Present:
		return "withdrawn"
	case r.ID.Kind == ledger.Balance:
		return phrase.Quantity(r.Close, scale)
	case r.ID.Kind == ledger.Alert:
		return fmt.Sprintf("%s -> %s below %s", phrase.Quantity(r.Previous, scale), phrase.Quantity(r.Close, scale), phrase.Quantity(r.Threshold, scale))
	case !r.Status.Blocked:
		return "READY"
	}
	return "BLOCKED " + Reasons(*r.Status)
}

// Reasons writes the reasons of a BLOCKED status for people.
func Reasons(s ledger.Status) string {
	parts := make([]string, 0, len(s.Reasons)+1)
	for _, r := range s.Reasons {
		if r.Code == ledger.Ambiguous {
			parts = append(parts, fmt.Sprintf("%v %s r%d", r.Code, Name(r.TxnID), r.Revision))
			continue
		}
		parts = append(parts, fmt.Sprintf("%v %v", r.Code, r.Day))
	}
	if s.More > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", s.More))
	}
	return strings.Join(parts, ", ")
}

// Name writes an identifier for a terminal: as it is where every character shows as itself, else quoted with escapes, so
// that control characters, direction marks, spaces and look-alike white space are seen.
func Name(s string) string {
	for _, r := range s {
		if r == '"' || r == '\\' || !unicode.IsGraphic(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.IsMark(r) {
			return strconv.QuoteToASCII(s)
		}
	}
	return s
}

// raw writes bytes for a terminal, cut to what a line can hold.
func raw(b []byte) string {
	const most = 512
	if b == nil {
		return "absent"
	}
	if len(b) > most {
		return strconv.QuoteToASCII(string(b[:most])) + fmt.Sprintf(" and %d bytes more", len(b)-most)
	}
	return strconv.QuoteToASCII(string(b))
}
