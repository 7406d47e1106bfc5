package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"amends/internal/broker"
	"amends/internal/embedded"
	"amends/internal/ledger"
	"amends/internal/provision"
	"amends/internal/report"
	"amends/internal/showcase"
	"amends/internal/store"
	"amends/internal/verify"
)

func (d *demo) admin() (*broker.Admin, error) { return broker.Open(d.target.Broker) }

// demoPipeline is a running demo as its story sees it (showcase.Pipeline).
type demoPipeline struct{ *demo }

// Ends returns the end offset of each source partition.
func (p *demoPipeline) Ends(ctx context.Context) ([]ledger.Offset, error) {
	return p.session.Admin.Ends(ctx, p.target.Manifest.SourceTopic)
}

// Load publishes a jsonl file under the loader's guard.
func (p *demoPipeline) Load(ctx context.Context, path string) error {
	_, err := p.loader(p.target, p.session, path, provision.JSONL, func([]provision.Coordinates) error { return nil }).Run(ctx)
	return err
}

// Snapshot reads one consistent state of the namespace.
func (p *demoPipeline) Snapshot(ctx context.Context, fn func(store.Snapshot) error) error {
	return p.session.Namespace.Snapshot(ctx, fn)
}

// Verify runs one quiesced verification.
func (p *demoPipeline) Verify(ctx context.Context) (*verify.Report, error) {
	return p.verifySession(ctx, p.target, p.session, &verify.Job{Timeout: verify.DefaultTimeout})
}

// The documented JSON of a demo; members are only ever added.
type (
	jsonDemo struct {
		Schema          int                `json:"schema"`
		SourceFrontiers []ledger.Frontier  `json:"source_frontiers"`
		NextSequences   []ledger.Sequence  `json:"next_sequences"`
		Balances        []jsonBalance      `json:"balances"`
		Alerts          []jsonAlert        `json:"alerts"`
		Verify          *report.JSON       `json:"verify"`
		Endpoints       embedded.Endpoints `json:"endpoints"`
		Timings         map[string]float64 `json:"timings"` // seconds
	}
	jsonBalance struct {
		Item     string         `json:"item"`
		Location string         `json:"location"`
		Day      string         `json:"day"`
		Close    int64          `json:"close"`
		Version  ledger.Version `json:"version"`
	}
	jsonAlert struct {
		Item      string         `json:"item"`
		Location  string         `json:"location"`
		Day       string         `json:"day"`
		Previous  int64          `json:"previous"`
		Close     int64          `json:"close"`
		Threshold int64          `json:"threshold"`
		Version   ledger.Version `json:"version"`
	}
)

func demoJSON(out io.Writer, r *showcase.Result, e embedded.Endpoints) error {
	j := jsonDemo{Schema: 1, Verify: report.Of(r.Report), Endpoints: e, Timings: map[string]float64{}, SourceFrontiers: []ledger.Frontier{},
		NextSequences: []ledger.Sequence{}, Balances: []jsonBalance{}, Alerts: []jsonAlert{}}
	for _, s := range r.States {
		j.SourceFrontiers = append(j.SourceFrontiers, s.Owned.Frontier)
		j.NextSequences = append(j.NextSequences, s.Owned.Sequence)
	}
	for _, b := range r.Balances {
		j.Balances = append(j.Balances, jsonBalance{b.ID.Key.Item, b.ID.Key.Location, b.ID.Day.String(), b.Close, b.Version})
	}
	for _, x := range r.Alerts {
		j.Alerts = append(j.Alerts, jsonAlert{x.ID.Key.Item, x.ID.Key.Location, x.ID.Day.String(), x.Previous, x.Close, x.Threshold, x.Version})
	}
	for _, t := range r.Timings {
		j.Timings[t.Step] = t.Elapsed.Seconds()
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(j); err != nil {
		return fmt.Errorf("print demo: %w", err)
	}
	return nil
}
