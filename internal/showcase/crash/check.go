package crash

import (
	"fmt"
	"slices"
	"strings"

	"amends/internal/showcase/account"
	"amends/internal/store/postgres/reader"
)

// What a step has to show is judged here, by values that were measured and nothing else.

// field is one number or digest of a partition.
type field struct {
	name string
	of   func(account.Partition) any
}

// sourceFields are what a worker changes, relayFields a relay and viewFields a view.
func sourceFields() []field {
	return []field{
		{"epoch", func(p account.Partition) any { return p.Epoch }},
		{"source frontier", func(p account.Partition) any { return p.Frontier }},
		{"next sequence", func(p account.Partition) any { return p.Sequence }},
		{"journal rows", func(p account.Partition) any { return p.JournalRows }},
		{"journal digest", func(p account.Partition) any { return brief(p.JournalDigest) }},
	}
}

func relayFields() []field {
	return []field{{"relay sequence", func(p account.Partition) any { return p.RelaySequence }}}
}

func viewFields() []field {
	return []field{
		{"view sequence", func(p account.Partition) any { return p.ViewSequence }},
		{"view frontier", func(p account.Partition) any { return p.ViewFrontier }},
		{"view rows", func(p account.Partition) any { return p.ViewRows }},
		{"withdrawn rows", func(p account.Partition) any { return p.ViewWithdrawn }},
		{"view digest", func(p account.Partition) any { return brief(p.ViewDigest) }},
	}
}

// allFields are all of them. Terms of leases are left out: a busy machine may cost a role its lease at any time.
func allFields() []field { return slices.Concat(sourceFields(), relayFields(), viewFields()) }

// brief is the beginning of a digest.
func brief(digest string) string { return digest[:min(12, len(digest))] }

// changes names the fields in which two states differ.
func changes(was, is account.State, fields []field) []string {
	if len(was.Partitions) != len(is.Partitions) {
		return []string{fmt.Sprintf("%d partitions → %d", len(was.Partitions), len(is.Partitions))}
	}
	var out []string
	for i, p := range was.Partitions {
		for _, f := range fields {
			if before, after := f.of(p), f.of(is.Partitions[i]); before != after {
				out = append(out, fmt.Sprintf("partition %d: %s %v → %v", p.Partition, f.name, before, after))
			}
		}
	}
	return out
}

// same requires that fields have not changed; what names them.
func same(what string, was, is account.State, fields []field) account.Finding {
	if c := changes(was, is, fields); len(c) > 0 {
		return account.Finding{Text: what + " changed: " + strings.Join(c, "; ")}
	}
	return account.Finding{OK: true, Text: what + " is what it was: " + summary(is)}
}

// summary is the state of the story's partition in a few words.
func summary(s account.State) string {
	if len(s.Partitions) == 0 {
		return "no partition"
	}
	p := s.Partitions[0]
	return fmt.Sprintf("frontier %d, sequence %d, %d journal rows (%s); view at sequence %d, %d rows, %d withdrawn (%s)", p.Frontier, p.Sequence, p.JournalRows, brief(p.JournalDigest), p.ViewSequence, p.ViewRows, p.ViewWithdrawn, brief(p.ViewDigest))
}

// moved requires that a number of the story's partition rose by exactly n.
func moved(name string, was, is, n int64) account.Finding {
	f := account.Finding{OK: is-was == n, Text: fmt.Sprintf("%s %d → %d", name, was, is)}
	if !f.OK {
		f.Text += fmt.Sprintf(", to be %d", was+n)
	}
	return f
}

// owned requires a first owner of each role of every partition.
func owned(s account.State) []account.Finding {
	var out []account.Finding
	for _, p := range s.Partitions {
		out = append(out, account.Finding{OK: p.Epoch > 0 && p.RelayTerm > 0 && p.ViewTerm > 0,
			Text: fmt.Sprintf("partition %d is held by worker (epoch %d), relay (term %d) and view (term %d)", p.Partition, p.Epoch, p.RelayTerm, p.ViewTerm)})
	}
	return out
}

// decided requires that as many records are journalled as were loaded in all, and that the view is at the end.
func decided(s account.State, loaded int64) account.Finding {
	var rows, outputs, applied int64
	for _, p := range s.Partitions {
		rows, outputs, applied = rows+p.JournalRows, outputs+p.Sequence, applied+p.ViewSequence
	}
	return account.Finding{OK: rows == loaded && outputs == applied && rows > 0,
		Text: fmt.Sprintf("%d of %d source records are decided, %d of %d outputs are in the view", rows, loaded, applied, outputs)}
}

// told requires the rows of the story.
func told(want []account.Row, s account.State) account.Finding {
	wanted, found := rows(want), rows(s.Story)
	if wanted == found {
		return account.Finding{OK: true, Text: "the view says " + found}
	}
	return account.Finding{Text: fmt.Sprintf("the view says %s, to be %s", found, wanted)}
}

// rows writes the story's rows: "2026-01-01 70 (v2)", "alert 2026-01-03 withdrawn (v2)".
func rows(all []account.Row) string {
	var out []string
	for _, r := range all {
		words := []string{r.Kind, r.Day, "withdrawn", fmt.Sprintf("(v%d)", r.Version)}
		if r.Present {
			words[2] = "READY"
		}
		if r.Close != nil {
			words[2] = fmt.Sprint(*r.Close)
		}
		out = append(out, strings.Join(strings.Fields(strings.TrimPrefix(strings.Join(words, " "), "balance ")), " "))
	}
	if out == nil {
		return "nothing of the story"
	}
	return strings.Join(out, ", ")
}

// row is a present or (close nil) withdrawn output of the story.
func row(day, kind string, version int64, value *int64) account.Row {
	return account.Row{Day: day, Kind: kind, Version: version, Present: value != nil, Close: value}
}

func units(n int64) *int64 { return &n }

// movements, corrected and withdrawn are the rows of the worked example (S8) after each of its files.
func movements() []account.Row {
	return []account.Row{
		row("2026-01-01", "balance", 1, units(100)), row("2026-01-02", "balance", 1, units(80)),
		row("2026-01-03", "balance", 1, units(50)), row("2026-01-03", "alert", 1, units(50)), ready(),
	}
}

func corrected() []account.Row {
	return []account.Row{
		row("2026-01-01", "balance", 2, units(70)), row("2026-01-02", "balance", 2, units(50)), row("2026-01-02", "alert", 1, units(50)),
		row("2026-01-03", "balance", 2, units(20)), row("2026-01-03", "alert", 2, nil), ready(),
	}
}

func withdrawn() []account.Row {
	all := corrected()
	all[3] = row("2026-01-03", "balance", 3, nil)
	return all
}

func ready() account.Row { return account.Row{Kind: "status", Version: 1, Present: true} }

// written requires a server process that waits for its process inside a transaction in which it has written.
func written(b reader.Backend, running bool) account.Finding {
	return account.Finding{OK: running && b.InTransaction && b.Wrote && b.State == "idle in transaction",
		Text: fmt.Sprintf("its writes are with the server and COMMIT is not: the server's process is %q, %s", said(b, running), wrote(b))}
}

func said(b reader.Backend, running bool) string {
	if !running {
		return "gone"
	}
	return b.State
}

func wrote(b reader.Backend) string {
	if b.Wrote {
		return "holding a transaction id"
	}
	return "holding no transaction id"
}

// ended requires the end of a process that was to come.
func ended(name string, pid int, end, want string) account.Finding {
	if end == want {
		return account.Finding{OK: true, Text: fmt.Sprintf("%s, process %d, ended: %s", name, pid, end)}
	}
	return account.Finding{Text: fmt.Sprintf("%s, process %d, ended: %q, to be %s", name, pid, end, want)}
}

// rolledBack requires that the server's process is gone, and with it its transaction.
func rolledBack(pid int32, running bool, after float64) account.Finding {
	if running {
		return account.Finding{Text: fmt.Sprintf("the server's process %d still runs", pid)}
	}
	return account.Finding{OK: true, Text: fmt.Sprintf("the server's process %d is gone %.3f s after the kill", pid, after)}
}

// taken requires that every partition has a higher epoch or term than before.
func taken(what string, was, is account.State, of func(account.Partition) int64) account.Finding {
	f := account.Finding{OK: len(was.Partitions) == len(is.Partitions) && len(is.Partitions) > 0}
	var out []string
	for i := range min(len(was.Partitions), len(is.Partitions)) {
		before, after := of(was.Partitions[i]), of(is.Partitions[i])
		f.OK = f.OK && after > before
		out = append(out, fmt.Sprintf("%d → %d", before, after))
	}
	f.Text = fmt.Sprintf("every partition has a new %s: %s", what, strings.Join(out, ", "))
	return f
}

// drained requires that each stage is at the end of the one before, and that the output topic holds each output once, the
// ones aside that the run itself published again.
func drained(s account.State, sourceEnds, outputEnds, repeated []int64) []account.Finding {
	var out []account.Finding
	for i, p := range s.Partitions {
		if i >= min(len(sourceEnds), len(outputEnds), len(repeated)) {
			return append(out, account.Finding{Text: fmt.Sprintf("the topics have fewer partitions than the namespace: %d", i)})
		}
		out = append(out,
			account.Finding{OK: p.Frontier == sourceEnds[i] && p.RelaySequence == p.Sequence && p.ViewSequence == p.Sequence,
				Text: fmt.Sprintf("partition %d: %d of %d source records are decided; of %d outputs %d are published and %d in the view",
					p.Partition, p.Frontier, sourceEnds[i], p.Sequence, p.RelaySequence, p.ViewSequence)},
			account.Finding{OK: outputEnds[i] == p.Sequence+repeated[i] && p.ViewFrontier == outputEnds[i],
				Text: fmt.Sprintf("partition %d: the output topic holds %d records: %d outputs once each, %d delivered again on purpose; the view has read %d",
					p.Partition, outputEnds[i], p.Sequence, repeated[i], p.ViewFrontier)})
	}
	if out == nil {
		out = append(out, account.Finding{Text: "no partition"})
	}
	return out
}
