package importing

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"amends/internal/intake"
	"amends/internal/phrase"
	"amends/internal/provision"
)

// The results of an import.
const (
	ready     = "READY"     // a dry run found nothing wrong
	refused   = "REFUSED"   // lines have problems; nothing was published
	published = "PUBLISHED" // everything is published
	complete  = "COMPLETE"  // everything was published before
	stopped   = "STOPPED"   // publication ended early, or did not begin
)

// report is the answer; its JSON only ever gains members (docs/reference/schemas/import.schema.json).
type report struct {
	FirstDay    *string          `json:"first_day"`
	LastDay     *string          `json:"last_day"`
	LeftOut     map[string]int64 `json:"left_out"`
	Kinds       map[string]int64 `json:"kinds"`
	Result      string           `json:"result"`
	File        string           `json:"file"`
	Digest      string           `json:"file_sha256"`
	Mapping     string           `json:"mapping"`
	Namespace   string           `json:"namespace"`
	SourceTopic string           `json:"source_topic"`
	First       []sample         `json:"first"`
	UnknownKeys []stockKey       `json:"unknown_keys"`
	Notes       []string         `json:"notes"`
	Problems    problems         `json:"problems"`
	Rows        int64            `json:"rows"`
	Records     int64            `json:"records"`
	Keys        int64            `json:"keys"`
	Published   int64            `json:"published"`
	Line        int64            `json:"acknowledged_line"`
	Schema      int              `json:"schema"`
	Executed    bool             `json:"executed"`
	begun       bool             // there is a progress file to go on from
}

type sample struct {
	Partition *int32          `json:"partition"` // null where the namespace does not have the key
	Value     json.RawMessage `json:"value"`
	Line      int64           `json:"line"`
}

type stockKey struct {
	Item     string `json:"item"`
	Location string `json:"location"`
}

type problems struct {
	Codes map[string]int64 `json:"codes"`
	Shown []problem        `json:"shown"`
	Count int64            `json:"count"`
}

type problem struct {
	Code   *string `json:"code"`   // of S3, null where the row itself cannot be read
	Column *int    `json:"column"` // byte in the line, null where it is not known
	Reason string  `json:"reason"`
	Line   int64   `json:"line"`
}

// unreadable is the code of rows that never became a record.
const unreadable = "ROW"

// newReport describes what was surveyed and what came of it.
func newReport(j *job, count int64, err error) *report {
	s, m := j.file.Survey(), j.file.Manifest
	r := &report{Schema: 1, File: j.path, Digest: s.Digest, Mapping: j.mapping, Namespace: m.Config.Namespace, SourceTopic: m.SourceTopic,
		Rows: s.Rows, Records: s.Records, LeftOut: s.LeftOut, Kinds: s.Kinds, Keys: s.Keys, Published: count, Executed: j.execute,
		First: []sample{}, UnknownKeys: []stockKey{}, Notes: notes(s), Problems: problems{Codes: map[string]int64{}, Shown: []problem{}}}
	if s.FirstDay != 0 {
		first, last := s.FirstDay.String(), s.LastDay.String()
		r.FirstDay, r.LastDay = &first, &last
	}
	if j.journal != nil {
		r.begun, r.Line = true, j.journal.Line()
	}
	for _, one := range s.First {
		out := sample{Line: one.Line, Value: one.Value}
		if one.Routed {
			out.Partition = &one.Partition
		}
		r.First = append(r.First, out)
	}
	for _, k := range s.UnknownKeys() {
		r.UnknownKeys = append(r.UnknownKeys, stockKey{k.Item, k.Location})
	}
	var bad *provision.RefusedFile
	switch {
	case errors.As(err, &bad):
		r.Result = refused
		r.refusal(bad)
	case errors.Is(err, intake.ErrComplete):
		r.Result = complete
	case err != nil:
		r.Result = stopped
	case j.execute:
		r.Result = published
	default:
		r.Result = ready
	}
	return r
}

func (r *report) refusal(bad *provision.RefusedFile) {
	r.Problems.Count = bad.Count
	for code, n := range bad.Codes {
		if code == "" {
			code = unreadable
		}
		r.Problems.Codes[code] += n
	}
	for _, p := range bad.Problems {
		out := problem{Line: p.Line, Reason: p.Reason}
		if p.Code != "" {
			out.Code = &p.Code
		}
		if p.Column > 0 {
			out.Column = &p.Column
		}
		r.Problems.Shown = append(r.Problems.Shown, out)
	}
}

// notes says what is no problem and yet worth a look.
func notes(s *intake.Survey) []string {
	out := []string{}
	if s.Records == 0 {
		out = append(out, "the file says nothing: no row became a record")
	}
	if s.Same > 0 {
		out = append(out, fmt.Sprintf("%d records say again what another one says: they will be DUPLICATE evidence and change nothing", s.Same))
	}
	if s.Foreign > 0 {
		out = append(out, fmt.Sprintf("%d rows look like UTF-8, which the mapping says the file is not; the first is line %d", s.Foreign, s.ForeignLine))
	}
	if s.Unchecked {
		out = append(out, fmt.Sprintf("transactions that are said twice differently were looked for among the first %d only", intake.MaxRepeats))
	}
	if s.MoreKeys {
		out = append(out, fmt.Sprintf("there are more than %d stock keys", s.Keys))
	}
	return out
}

func (r *report) json(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// text writes the answer, what the file holds, the first records and the problems.
func (r *report) text(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.headline())
	fmt.Fprintf(&b, "  rows       %d\n", r.Rows)
	for _, part := range slices.Sorted(maps.Keys(r.LeftOut)) {
		fmt.Fprintf(&b, "  left out   %d by %s\n", r.LeftOut[part], part)
	}
	fmt.Fprintf(&b, "  records    %d\n", r.Records)
	for _, kind := range []string{"receipt", "issue", "opening_count", "closing_count", "cancelled"} {
		if n := r.Kinds[kind]; n > 0 {
			fmt.Fprintf(&b, "  %-15s %d\n", "  "+kind, n)
		}
	}
	fmt.Fprintf(&b, "  stock keys %d\n", r.Keys)
	if r.FirstDay != nil {
		fmt.Fprintf(&b, "  days       %s to %s\n", *r.FirstDay, *r.LastDay)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	if len(r.First) > 0 {
		fmt.Fprintf(&b, "\nthe first %s:\n", phrase.Counted(int64(len(r.First)), "record"))
	}
	for _, s := range r.First {
		partition := "-"
		if s.Partition != nil {
			partition = strconv.Itoa(int(*s.Partition))
		}
		fmt.Fprintf(&b, "  line %d partition %s %s\n", s.Line, partition, phrase.Printable(string(s.Value)))
	}
	r.problemText(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *report) problemText(b *strings.Builder) {
	if r.Problems.Count == 0 {
		return
	}
	var codes []string
	for _, code := range slices.Sorted(maps.Keys(r.Problems.Codes)) {
		codes = append(codes, fmt.Sprintf("%s %d", code, r.Problems.Codes[code]))
	}
	fmt.Fprintf(b, "\n%s (%s):\n", phrase.Counted(r.Problems.Count, "problem"), strings.Join(codes, ", "))
	for _, p := range r.Problems.Shown {
		place := "line " + strconv.FormatInt(p.Line, 10)
		if p.Column != nil {
			place += " column " + strconv.Itoa(*p.Column)
		}
		if p.Code != nil {
			place += ": " + *p.Code
		}
		fmt.Fprintf(b, "  %s: %s\n", place, phrase.Printable(p.Reason))
	}
	if more := r.Problems.Count - int64(len(r.Problems.Shown)); more > 0 {
		fmt.Fprintf(b, "  and %d more; -problems %d shows them\n", more, min(r.Problems.Count, problemsMost))
	}
	if len(r.UnknownKeys) > 0 {
		b.WriteString("\nkeys that the namespace does not have, the first of them:\n")
	}
	for _, k := range r.UnknownKeys {
		fmt.Fprintf(b, "  %q at %q\n", k.Item, k.Location)
	}
}

// headline is the answer in one line.
func (r *report) headline() string {
	switch r.Result {
	case ready:
		return fmt.Sprintf("READY: %s from %s; nothing was published, -execute publishes them to %s", phrase.Counted(r.Records, "record"), phrase.Counted(r.Rows, "row"), r.SourceTopic)
	case refused:
		return fmt.Sprintf("REFUSED: %s in %s; nothing was published", phrase.Counted(r.Problems.Count, "problem"), phrase.Counted(r.Rows, "row"))
	case complete:
		return fmt.Sprintf("COMPLETE: all %s were published to %s before; nothing was published now, -restart publishes them again", phrase.Counted(r.Records, "record"), r.SourceTopic)
	case published:
		if r.Published < r.Records {
			return fmt.Sprintf("PUBLISHED: the last %d of %s to %s", r.Published, phrase.Counted(r.Records, "record"), r.SourceTopic)
		}
		return fmt.Sprintf("PUBLISHED: %s to %s", phrase.Counted(r.Records, "record"), r.SourceTopic)
	}
	if !r.begun {
		return fmt.Sprintf("STOPPED: none of %s was published", phrase.Counted(r.Records, "record"))
	}
	return fmt.Sprintf("STOPPED: %d of %s were published now; running it again goes on after line %d", r.Published, phrase.Counted(r.Records, "record"), r.Line)
}
