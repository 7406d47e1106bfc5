package restore

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/inspect"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/phrase"
	"amends/internal/progress"
	"amends/internal/provision"
	"amends/internal/recovery"
	"amends/internal/store"
	"amends/internal/usage"
	"amends/internal/wire"
)

// exitDifferent is the code of two namespaces that differ, as DRIFT is of a view (design section 8).
const exitDifferent = 5

// Compare returns the command compare.
func Compare(e *target.Env) *cobra.Command {
	var with string
	cmd := &cobra.Command{
		Short: "Compare what two namespaces publish, by output and value",
		Long: `Walks the views of two namespaces of one database beside each other and compares payload and presence of every output; an
output that was withdrawn and one that never was are the same. Versions and causes are not compared. Nothing is waited for:
where the two stand for different source records, that is said. The code is 0 where everything is equal, 5 where not.`,
		Example: `  amends compare -manifest pipeline.json -with rebuilt.json
  amends compare -manifest pipeline.json -with rebuilt.json -o json`,
		Args: usage.NoArgs,
	}
	e.ManifestFlag(cmd)
	e.SpareBrokersFlag(cmd)
	e.OutputFlag(cmd)
	cmd.Flags().StringVar(&with, "with", "", "manifest `file` of the other namespace")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := e.JSON()
		if err != nil {
			return err
		}
		if with == "" {
			return usage.Errorf("%s needs -with, the manifest of the other namespace", cmd.CommandPath())
		}
		stages := progress.On(e.Stderr, e.Getenv).Stages(recovery.Units())
		defer stages.Done()
		c, err := compare(cmd.Context(), e, with, stages.Report)
		stages.Done()
		if err != nil {
			return err
		}
		if asJSON {
			err = writeJSON(e.Stdout, comparisonJSON(c))
		} else {
			_, err = io.WriteString(e.Stdout, comparisonText(c))
		}
		if err == nil && c.Differences() > 0 {
			err = &usage.Verdict{Code: exitDifferent, Text: "compare " + comparisonHeadline(c)}
		}
		return err
	}
	return watch.Wrap(e, cmd)
}

func compare(ctx context.Context, e *target.Env, with string, report func(string, int64, int64)) (*recovery.Comparison, error) {
	t, err := e.Target()
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(with)
	if err != nil {
		return nil, usage.Errorf("read manifest: %v", err)
	}
	other, err := manifest.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", with, err)
	}
	opening, cancel := context.WithTimeout(ctx, target.GiveUp)
	defer cancel()
	s, err := e.Open(opening, t, target.ReadOnly)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := provision.CheckBinding(opening, s.Namespace, t.Manifest); err != nil {
		return nil, err
	}
	ns, err := s.DB.Namespace(opening, other.Config)
	if err != nil {
		return nil, err
	}
	if err := provision.CheckBinding(opening, ns, other); err != nil {
		return nil, err
	}
	return recovery.Compare(ctx, s.Namespace, ns, report)
}

func comparisonHeadline(c *recovery.Comparison) string {
	at := ""
	if !c.SameCuts() {
		at = ", at different cuts"
	}
	if c.Differences() == 0 {
		return fmt.Sprintf("EQUAL  %s and %s hold the same %s%s", c.A.Namespace, c.B.Namespace, phrase.Counted(c.Equal, "output"), at)
	}
	d := c.First
	return fmt.Sprintf("DIFFERENT  %s of %s and %s%s; the first: partition %d %s: %s | %s", phrase.Counted(c.Differences(), "output"),
		c.A.Namespace, c.B.Namespace, at, d.Partition, outputName(d.ID), side(d.A, c.A.Scale), side(d.B, c.B.Scale))
}

func comparisonText(c *recovery.Comparison) string {
	var b strings.Builder
	fmt.Fprintln(&b, comparisonHeadline(c))
	for _, s := range []*recovery.Compared{&c.A, &c.B} {
		fmt.Fprintf(&b, "%s: %d present, %d withdrawn; cuts %v\n", s.Namespace, s.Present, s.Withdrawn, s.Cuts)
	}
	fmt.Fprintf(&b, "equal %d, other values %d, only in %s %d, only in %s %d\n", c.Equal, c.Value, c.A.Namespace, c.OnlyA, c.B.Namespace, c.OnlyB)
	if !c.SameCuts() {
		fmt.Fprintln(&b, "the two stand for different source records: what differs may be what one of them has not applied yet")
	}
	for _, d := range c.Configuration {
		fmt.Fprintf(&b, "the configurations differ: %s\n", d)
	}
	return b.String()
}

func outputName(id ledger.OutputID) string {
	s := fmt.Sprintf("%v %s %s", id.Kind, inspect.Name(id.Key.Item), inspect.Name(id.Key.Location))
	if id.Kind != ledger.TrustStatus {
		s += " " + id.Day.String()
	}
	return s
}

// side writes what one namespace holds of an output.
func side(r *store.ViewRow, scale int32) string {
	switch {
	case r == nil:
		return "absent"
	case !r.Present:
		return fmt.Sprintf("withdrawn (version %d)", r.Version)
	}
	return fmt.Sprintf("%s (version %d, source %d/%d)", inspect.Value(r, scale), r.Version, r.Cause.Partition, r.Cause.Offset)
}

type (
	jsonComparison struct {
		Schema        int             `json:"schema"`
		Result        string          `json:"result"`
		A             jsonCompared    `json:"a"`
		B             jsonCompared    `json:"b"`
		SameCuts      bool            `json:"same_cuts"`
		Equal         int64           `json:"equal"`
		Differences   jsonDifferences `json:"differences"`
		Configuration []string        `json:"configuration"`
	}
	jsonCompared struct {
		Namespace string            `json:"namespace"`
		Cuts      []ledger.Frontier `json:"cuts"`
		Present   int64             `json:"present"`
		Withdrawn int64             `json:"withdrawn"`
		Scale     int32             `json:"quantity_scale"`
	}
	jsonDifferences struct {
		Count int64           `json:"count"`
		Value int64           `json:"value"`
		OnlyA int64           `json:"only_a"`
		OnlyB int64           `json:"only_b"`
		First *jsonDifference `json:"first"`
	}
	jsonDifference struct {
		What      recovery.Difference `json:"what"`
		Partition ledger.Partition    `json:"partition"`
		Output    []string            `json:"output"`
		A         *jsonSide           `json:"a"`
		B         *jsonSide           `json:"b"`
	}
	jsonSide struct {
		Present bool            `json:"present"`
		Payload json.RawMessage `json:"payload"`
		Version ledger.Version  `json:"version"`
		Cause   jsonCause       `json:"cause"`
	}
	jsonCause struct {
		Partition ledger.Partition `json:"partition"`
		Offset    ledger.Offset    `json:"offset"`
		TxnID     string           `json:"txn_id"`
		Revision  ledger.Revision  `json:"revision"`
	}
)

func comparisonJSON(c *recovery.Comparison) *jsonComparison {
	j := &jsonComparison{Schema: 1, Result: "EQUAL", A: comparedJSON(&c.A), B: comparedJSON(&c.B), SameCuts: c.SameCuts(), Equal: c.Equal,
		Differences:   jsonDifferences{Count: c.Differences(), Value: c.Value, OnlyA: c.OnlyA, OnlyB: c.OnlyB},
		Configuration: append([]string{}, c.Configuration...)}
	if d := c.First; d != nil {
		j.Result = "DIFFERENT"
		j.Differences.First = &jsonDifference{What: d.What, Partition: d.Partition, Output: outputID(d.ID), A: sideJSON(d.A), B: sideJSON(d.B)}
	}
	return j
}

func comparedJSON(s *recovery.Compared) jsonCompared {
	return jsonCompared{Namespace: s.Namespace, Cuts: append([]ledger.Frontier{}, s.Cuts...), Present: s.Present, Withdrawn: s.Withdrawn, Scale: s.Scale}
}

// outputID writes an output id as S8 does.
func outputID(id ledger.OutputID) []string {
	parts := []string{id.Kind.String(), id.Key.Item, id.Key.Location}
	if id.Kind != ledger.TrustStatus {
		parts = append(parts, id.Day.String())
	}
	return parts
}

func sideJSON(r *store.ViewRow) *jsonSide {
	if r == nil {
		return nil
	}
	j := &jsonSide{Present: r.Present, Version: r.Version, Cause: jsonCause{r.Cause.Partition, r.Cause.Offset, r.Cause.TxnID, r.Cause.Revision}}
	switch {
	case !r.Present:
	case r.ID.Kind == ledger.Balance:
		j.Payload = fmt.Appendf(nil, `{"close":%d}`, r.Close)
	case r.ID.Kind == ledger.Alert:
		j.Payload = fmt.Appendf(nil, `{"previous":%d,"close":%d,"threshold":%d}`, r.Previous, r.Close, r.Threshold)
	default:
		j.Payload = wire.AppendStatus(nil, r.Status)
	}
	return j
}

// writeJSON writes an answer as one line.
func writeJSON(out io.Writer, answer any) error {
	w := json.NewEncoder(out)
	w.SetEscapeHTML(false)
	return w.Encode(answer)
}
