package account

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
)

//go:embed page.html
var page string

// telling reports whether a step's durable state is open to see at once.
func telling(step string) bool {
	switch step {
	case "worker-killed", "worker-recovered", "view-killed-before-upsert", "view-killed-after-commit", "older-record":
		return true
	}
	return false
}

// HTML writes one page that needs nothing else: no script, no picture, no other file.
func (a *Account) HTML(out io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"mark":  Mark,
		"clock": func(t time.Time) string { return t.Format(clock) },
		"date":  func(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") },
		"join":  func(s []string) string { return strings.Join(s, ", ") },
		"next":  func(i int) int { return i + 1 },
		"took":  func(s float64) string { return fmt.Sprintf("%.1f s", s) },
		"exact": func(s float64) string { return fmt.Sprintf("%.3f s", s) },
		"table": Table,
		"tells": telling,
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	if err := t.Execute(out, a); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// Line is one measure of durable state in every moment of a step.
type Line struct {
	Name  string
	Group string // what the line is about, on its first line only
	Cells []Cell
}

// Cell is a value; Changed says that it is not what it was in the moment before.
type Cell struct {
	Text    string
	Changed bool
}

// Table lines up moments: the rows of the story, then each partition. It is nil where there are none.
func Table(moments []Moment) []Line {
	if len(moments) == 0 {
		return nil
	}
	lines := story(moments)
	for i := range moments[0].State.Partitions {
		for j, name := range measures {
			l := Line{Name: name}
			if j == 0 {
				l.Group = fmt.Sprintf("partition %d", moments[0].State.Partitions[i].Partition)
			}
			for _, m := range moments {
				text := ""
				if i < len(m.State.Partitions) {
					text = m.State.Partitions[i].values()[j]
				}
				l.add(text)
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// add appends a value.
func (l *Line) add(text string) {
	n := len(l.Cells)
	l.Cells = append(l.Cells, Cell{Text: text, Changed: n > 0 && l.Cells[n-1].Text != text})
}

// measures name the values of a partition.
var measures = [...]string{"worker epoch", "source frontier", "next sequence", "journal rows", "journal digest", "relay term", "relay sequence",
	"view term", "view sequence", "view frontier", "view rows", "of them withdrawn", "view digest"}

// values are in the order of measures.
func (p Partition) values() [len(measures)]string {
	n := func(v int64) string { return fmt.Sprint(v) }
	d := func(digest string) string { return digest[:min(12, len(digest))] }
	return [...]string{n(p.Epoch), n(p.Frontier), n(p.Sequence), n(p.JournalRows), d(p.JournalDigest), n(p.RelayTerm), n(p.RelaySequence),
		n(p.ViewTerm), n(p.ViewSequence), n(p.ViewFrontier), n(p.ViewRows), n(p.ViewWithdrawn), d(p.ViewDigest)}
}

// story lines up the rows of the story.
func story(moments []Moment) []Line {
	type output struct{ day, kind string }
	var order []output
	seen := map[output]bool{}
	for _, m := range moments {
		for _, r := range m.State.Story {
			if at := (output{r.Day, r.Kind}); !seen[at] {
				seen[at] = true
				order = append(order, at)
			}
		}
	}
	slices.SortFunc(order, func(a, b output) int { // as the view orders them: by day, the balance first, the status last
		return cmp.Or(cmp.Compare(rank(a.day), rank(b.day)), strings.Compare(a.day, b.day), strings.Compare(b.kind, a.kind))
	})
	var lines []Line
	for i, at := range order {
		l := Line{Name: strings.TrimSpace(at.day + " " + at.kind)}
		if i == 0 {
			l.Group = "view rows of the story"
		}
		for _, m := range moments {
			l.add(m.State.cell(at.day, at.kind))
		}
		lines = append(lines, l)
	}
	return lines
}

// rank puts what has no day last.
func rank(day string) int {
	if day == "" {
		return 1
	}
	return 0
}

// cell is what the view says of one output of the story.
func (s State) cell(day, kind string) string {
	for _, r := range s.Story {
		switch {
		case r.Day != day || r.Kind != kind:
		case !r.Present:
			return fmt.Sprintf("withdrawn, v%d", r.Version)
		case r.Close == nil:
			return fmt.Sprintf("READY, v%d", r.Version)
		default:
			return fmt.Sprintf("%d, v%d", *r.Close, r.Version)
		}
	}
	return "none"
}

// Before are the moments of a step of that index, after the last moment that came before it.
func (a *Account) Before(step int) []Moment {
	own := a.Steps[step].Moments
	if len(own) == 0 {
		return nil
	}
	for i := step - 1; i >= 0; i-- {
		if m := a.Steps[i].Moments; len(m) > 0 {
			return append([]Moment{m[len(m)-1]}, own...)
		}
	}
	return own
}
