package account

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// Headline is the first line of a report: the answer.
func (a *Account) Headline() string {
	return fmt.Sprintf("%s %s  %s", a.Scenario, a.Status, a.Outcome())
}

// Outcome is what the answer says beside the status.
func (a *Account) Outcome() string {
	if a.Failed != nil {
		return fmt.Sprintf("step %s: %s", a.Failed.Step, strings.TrimPrefix(a.Failed.Cause, "step "+a.Failed.Step+": "))
	}
	parts := []string{Count(int64(len(a.Kills)), "process", "processes") + " killed"}
	if a.Handover != nil {
		parts = append(parts, fmt.Sprintf("the relay handed over in %.1f s", a.Handover.Seconds))
	}
	if a.Verify != nil {
		parts = append(parts, fmt.Sprintf("verify %s over %s", a.Verify.Status, Count(a.Verify.SourceRecords, "source record", "source records")))
	}
	return strings.Join(parts, ", ")
}

// Count writes a number with its noun.
func Count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Mark is a sign for a step or finding.
func Mark(ok bool) string {
	if ok {
		return "✓"
	}
	return "✗"
}

// OK reports whether everything that the step found is as it should be.
func (s Step) OK() bool {
	for _, f := range s.Findings {
		if !f.OK {
			return false
		}
	}
	return len(s.Findings) > 0
}

// Text writes the report for people.
func (a *Account) Text(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", a.Headline())
	fmt.Fprintf(&b, "namespace   %s, topics %s and %s\n", a.Namespace, a.SourceTopic, a.OutputTopic)
	fmt.Fprintf(&b, "services    PostgreSQL %s at %s, brokers %s%s\n", a.Services.PostgreSQL, a.Services.Database, strings.Join(a.Services.Brokers, ","), a.Services.where())
	fmt.Fprintf(&b, "run         %s, %.1f s\n", a.Started.Format(time.RFC3339), a.Seconds)
	fmt.Fprintf(&b, "directory   %s\n", a.Directory)
	for i, s := range a.Steps {
		fmt.Fprintf(&b, "\n%2d %s %s   %.1f s\n", i+1, Mark(s.OK()), s.Title, s.Seconds)
		for _, e := range s.Events {
			fmt.Fprintf(&b, "     %s  %s\n", e.At.Format(clock), e.Text)
		}
		for _, f := range s.Findings {
			fmt.Fprintf(&b, "     %s %s\n", Mark(f.OK), f.Text)
		}
	}
	if len(a.Kills) > 0 {
		b.WriteString("\nKilled by SIGKILL\n")
	}
	for _, k := range a.Kills {
		fmt.Fprintf(&b, "     %s  %-9s process %-8d %-36s server process %d: %q, gone after %.3f s\n", k.At.Format(clock), k.Process, k.PID, k.Phase,
			k.Backend, k.BackendState, k.BackendGone)
	}
	if len(a.Commands) > 0 {
		b.WriteString("\nLook further\n")
	}
	for _, c := range a.Commands {
		fmt.Fprintf(&b, "     %s\n", c)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// clock writes a time of the day, to the millisecond.
const clock = "15:04:05.000"

func (s Services) where() string {
	if s.Embedded {
		return " (embedded)"
	}
	return ""
}

// JSON writes the documented JSON.
func (a *Account) JSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(a); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Form is how a report is written.
type Form string

// The forms.
const (
	Text Form = "text"
	JSON Form = "json"
	HTML Form = "html"
)

// Valid reports whether f is a form.
func (f Form) Valid() bool { return f == Text || f == JSON || f == HTML }

// FormOf is the form that the name of a file asks for: HTML for .html and .htm, JSON for .json, else text.
func FormOf(path string) Form {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".html", ".htm":
		return HTML
	case ".json":
		return JSON
	}
	return Text
}

// Write writes the report in a form.
func (a *Account) Write(out io.Writer, f Form) error {
	switch f {
	case JSON:
		return a.JSON(out)
	case HTML:
		return a.HTML(out)
	}
	return a.Text(out)
}
