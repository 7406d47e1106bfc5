package health

import (
	"context"
	"fmt"
	"slices"
	"time"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
)

// Namespace is what is looked at: one consistent state of the database at a time.
type Namespace interface {
	Look(ctx context.Context, fn func(*reader.Snapshot) error) error
}

// Progress is how far a namespace has come, from one snapshot of the database. What is nil is not known, and never zero.
type Progress struct {
	At           time.Time     `json:"at"` // of the snapshot, by the database's clock
	Namespace    string        `json:"namespace"`
	SourceTopic  string        `json:"source_topic"`
	OutputTopic  string        `json:"output_topic,omitempty"`
	SourceError  string        `json:"source_error,omitempty"` // why nothing is known of the source topic
	Lag          Lag           `json:"lag"`
	Outbox       Waiting       `json:"outbox"`
	View         Waiting       `json:"view"`
	Verification *Verification `json:"verification"` // the last, null before the first
	Audit        *Audit        `json:"audit"`        // null unless every partition was audited
	Partitions   []Partition   `json:"partitions"`
	Blocked      []Blocked     `json:"blocked"` // the first of them
	BlockedKeys  int64         `json:"blocked_keys"`
	Quarantined  *int64        `json:"quarantined"` // records
}

// Lag is source records that no commit covers yet. Records counts offsets, Seconds is the age of the oldest of them by its own
// timestamp. LeastSeconds says that an older one may not have been looked at.
type Lag struct {
	Records      *int64   `json:"records"`
	Seconds      *float64 `json:"seconds"`
	LeastSeconds bool     `json:"least_seconds,omitempty"`
}

// Waiting is outputs on their way: how many, and for how long the first waits (0 where none does).
type Waiting struct {
	Outputs int64   `json:"outputs"`
	Seconds float64 `json:"oldest_seconds"`
}

// Verification is a finished verification or audit cycle (S10).
type Verification struct {
	Finished    time.Time `json:"finished"`
	Status      string    `json:"status"`
	Detail      string    `json:"detail,omitempty"`
	AgeSeconds  float64   `json:"age_seconds"`
	Differences int64     `json:"differences"`
	Quiesced    bool      `json:"quiesced"`
	Deep        bool      `json:"deep"`
	Audit       bool      `json:"audit"`
}

// Audit sums up what audits have found of all partitions: Checked is the end of the cycle that is longest ago, Verified the time up
// to which everything was equal, nil where it never was. Cycles that find nothing new are recorded here alone.
type Audit struct {
	Checked     time.Time  `json:"checked"`
	Verified    *time.Time `json:"verified"`
	AgeSeconds  *float64   `json:"verified_age_seconds"`
	Status      string     `json:"status"`
	Differences int64      `json:"differences"`
}

// Partition is one partition's part of it. End is the source topic's high watermark. Held says that an open transaction keeps
// readers from the records behind the frontier. Relay and View are nil before the binding (S9).
type Partition struct {
	End          *int64        `json:"source_end"`
	Relay        *Delivery     `json:"relay"`
	View         *Delivery     `json:"view"`
	Stop         *Stop         `json:"stop"`
	Measurements *Measurements `json:"measurements,omitempty"`
	Lag          Lag           `json:"lag"`
	Outbox       Waiting       `json:"outbox"`
	Unapplied    Waiting       `json:"unapplied"` // published, not in the view
	Frontier     int64         `json:"source_frontier"`
	Sequence     int64         `json:"next_sequence"`
	Epoch        int64         `json:"epoch"`
	BlockedKeys  int64         `json:"blocked_keys"`
	Partition    int32         `json:"partition"`
	Held         bool          `json:"held,omitempty"`
}

// Delivery is the position of a relay or a view, and who holds its lease ("" for nobody).
type Delivery struct {
	Holder   string `json:"holder"`
	Term     int64  `json:"term"`
	Sequence int64  `json:"next_sequence"`
	Output   int64  `json:"output_frontier"`
}

// Stop is the violation that stopped a partition for ever (S9).
type Stop struct {
	Reason string `json:"reason"`
	Offset int64  `json:"output_offset"`
}

// Blocked is a blocked key (S7): why, by which record its latest status was made, and since when it is blocked.
type Blocked struct {
	Since    *Since          `json:"since"`
	Item     string          `json:"item"`
	Location string          `json:"location"`
	Status   ledger.Status   `json:"-"`
	Reasons  []Reason        `json:"reasons"`
	Cause    Cause           `json:"cause"`
	More     int64           `json:"more"`
	Version  int64           `json:"version"`
	ID       ledger.StockKey `json:"-"`
}

// Since is when a block began, by the database's clock, and with which record. Longer says that it began even earlier.
type Since struct {
	At         time.Time `json:"at"`
	Record     Cause     `json:"record"`
	AgeSeconds float64   `json:"age_seconds"`
	Longer     bool      `json:"longer,omitempty"`
}

// Cause is a source record (S8).
type Cause struct {
	TxnID     string `json:"txn_id"`
	Offset    int64  `json:"offset"`
	Revision  int64  `json:"revision"`
	Partition int32  `json:"partition"`
}

// Reason is one entry of a status payload (S8).
type Reason struct {
	Code     string `json:"code"`
	TxnID    string `json:"txn_id,omitempty"`
	Day      string `json:"day,omitempty"`
	Revision int64  `json:"revision,omitempty"`
}

// Measurements are a partition's (design, storage). Last and Total are nil before the first measured commit: what was done until
// then is not known. Complete says that Total counts every record there is, so that nothing earlier is missing from it.
type Measurements struct {
	Last     *Sample  `json:"last"`
	Total    *Sample  `json:"total"` // rewind_days is the largest of all
	Recent   []Sample `json:"recent"`
	Commits  int64    `json:"commits"`
	Complete bool     `json:"complete"`
}

// Sample is one commit, or the sum of many.
type Sample struct {
	Records   int64 `json:"records"`
	Accepted  int64 `json:"accepted"`
	Rejected  int64 `json:"rejected"`
	Rewind    int64 `json:"rewind_days"`
	Refolded  int64 `json:"refolded_days"`
	Changed   int64 `json:"outputs_changed"`
	Withdrawn int64 `json:"outputs_withdrawn"`
	Lock      int64 `json:"lock_ns"`
	PreCommit int64 `json:"pre_commit_ns"`
}

// Look is what Read reads: at most Blocked keys are listed. Topic is nil where the broker is not asked.
type Look struct {
	Namespace Namespace
	Manifest  *manifest.Manifest
	Topic     *Topic
	Blocked   int
}

// Read takes the snapshot first and asks the source topic then, so that no lag is negative.
func (l *Look) Read(ctx context.Context) (*Progress, error) {
	p := &Progress{Namespace: l.Manifest.Config.Namespace, SourceTopic: l.Manifest.SourceTopic, Blocked: []Blocked{}}
	if l.Manifest.Output != nil {
		p.OutputTopic = l.Manifest.Output.Topic
	}
	if err := l.Namespace.Look(ctx, func(s *reader.Snapshot) error { return p.snapshot(ctx, s, l.Blocked) }); err != nil {
		return nil, fmt.Errorf("read progress of %s: %w", p.Namespace, err)
	}
	if l.Topic == nil {
		p.SourceError = "the broker was not asked"
		return p, nil
	}
	if err := l.Topic.look(ctx, p); err != nil {
		p.SourceError = err.Error()
	}
	return p, nil
}

// snapshot reads everything that the database says.
func (p *Progress) snapshot(ctx context.Context, s *reader.Snapshot, blocked int) error {
	moment, err := s.Moment(ctx)
	if err != nil {
		return err
	}
	p.At = moment.Now.UTC()
	states, err := s.Partitions(ctx)
	if err != nil {
		return err
	}
	oldest, err := s.OldestWork(ctx)
	if err != nil {
		return err
	}
	counts, err := s.CountBlocked(ctx)
	if err != nil {
		return err
	}
	p.Partitions = make([]Partition, len(states))
	for i, state := range states {
		p.Partitions[i] = partition(state)
		one := &p.Partitions[i]
		one.Outbox.Seconds, one.Unapplied.Seconds = p.since(oldest[i].Undelivered), p.since(oldest[i].Unapplied)
		one.BlockedKeys = counts[state.Partition]
		p.Outbox.add(one.Outbox)
		p.View.add(one.Unapplied)
		p.BlockedKeys += one.BlockedKeys
	}
	p.Quarantined = quarantined(p.Partitions)
	if err := p.holders(ctx, s); err != nil {
		return err
	}
	return p.exceptions(ctx, s, blocked)
}

// since is the age of a moment in seconds; what was committed after the snapshot's transaction began is 0 old.
func (p *Progress) since(t *time.Time) float64 {
	if t == nil {
		return 0
	}
	return max(0, p.At.Sub(*t).Seconds())
}

func (w *Waiting) add(o Waiting) {
	w.Outputs += o.Outputs
	w.Seconds = max(w.Seconds, o.Seconds)
}

// partition says what one partition's rows say.
func partition(s store.PartitionState) Partition {
	p := Partition{Partition: int32(s.Partition), Epoch: int64(s.Owned.Token.Epoch), Frontier: int64(s.Owned.Frontier), Sequence: int64(s.Owned.Sequence),
		Outbox: Waiting{Outputs: int64(s.Owned.Sequence)}, Measurements: measured(s)}
	if s.Relay != nil {
		p.Relay = &Delivery{Term: s.Relay.Term, Sequence: int64(s.Relay.Sequence), Output: int64(s.Relay.Output)}
		p.Outbox.Outputs -= p.Relay.Sequence
	}
	if s.View != nil {
		p.View = &Delivery{Term: s.View.Term, Sequence: int64(s.View.Sequence), Output: int64(s.View.Output)}
		if p.Relay != nil {
			p.Unapplied.Outputs = max(0, p.Relay.Sequence-p.View.Sequence)
		}
		if s.View.Stopped {
			p.Stop = &Stop{Offset: p.View.Output}
		}
	}
	return p
}

func measured(s store.PartitionState) *Measurements {
	m := &Measurements{Commits: s.Measurements.Commits, Recent: []Sample{}}
	for _, one := range s.Measurements.Recent {
		m.Recent = append(m.Recent, sample(one))
	}
	if s.Measurements.Last != nil {
		last := sample(*s.Measurements.Last)
		m.Last = &last
	}
	if m.Commits > 0 || s.Owned.Frontier == 0 {
		total := sample(s.Measurements.Total)
		m.Total, m.Complete = &total, total.Records == int64(s.Owned.Frontier)
	}
	return m
}

func sample(s store.Sample) Sample {
	w := s.Work
	return Sample{Records: w.Records, Accepted: w.Accepted, Rejected: w.Rejected, Rewind: w.RewindDays, Refolded: w.RefoldedDays, Changed: w.Changed,
		Withdrawn: w.Withdrawn, Lock: s.Lock, PreCommit: s.PreCommit}
}

// quarantined sums what the commits counted: unknown where some were not measured.
func quarantined(partitions []Partition) *int64 {
	var n int64
	for _, p := range partitions {
		if p.Measurements.Total == nil {
			return nil
		}
		n += p.Measurements.Total.Rejected
	}
	return &n
}

// holders says who holds the leases.
func (p *Progress) holders(ctx context.Context, s *reader.Snapshot) error {
	leases, err := s.Leases(ctx)
	if err != nil {
		return err
	}
	for _, l := range leases {
		one := &p.Partitions[l.Partition]
		role := one.Relay
		if l.Role == store.View {
			role = one.View
		}
		if role != nil && l.Live {
			role.Holder = l.Holder
		}
	}
	return nil
}

// exceptions reads what is rare: violations, blocked keys, the last verification.
func (p *Progress) exceptions(ctx context.Context, s *reader.Snapshot, blocked int) error {
	violations, err := s.Violations(ctx)
	if err != nil {
		return err
	}
	for _, v := range violations {
		p.Partitions[v.Partition].Stop = &Stop{Reason: v.Reason, Offset: int64(v.Offset)}
	}
	v, err := s.LastVerification(ctx)
	if err != nil {
		return err
	}
	if v != nil {
		p.Verification = &Verification{Finished: v.Finished.UTC(), Status: v.Status, Detail: v.Detail, AgeSeconds: p.since(&v.Finished),
			Differences: v.Differences, Quiesced: v.Quiesced, Deep: v.Deep, Audit: v.Audit}
	}
	state, err := s.AuditState(ctx)
	if err != nil {
		return err
	}
	p.Audit = p.audit(state)
	if p.BlockedKeys == 0 || blocked == 0 {
		return nil
	}
	keys, err := s.BlockedKeys(ctx, -1, 0, blocked)
	if err != nil {
		return err
	}
	for _, k := range keys {
		p.Blocked = append(p.Blocked, BlockedKey(k, p.At))
	}
	return nil
}

// audit sums up the partitions' states: a DRIFT outweighs everything, then the order of S10.
func (p *Progress) audit(state store.AuditState) *Audit {
	if len(state.Partitions) < len(p.Partitions) {
		return nil
	}
	a := &Audit{Status: "PASS"}
	order := []string{"PASS", "BLOCKED", "INCOMPLETE", "UNAVAILABLE", "DRIFT"}
	verified := true
	for i, one := range state.Partitions {
		if slices.Index(order, one.Status) > slices.Index(order, a.Status) {
			a.Status = one.Status
		}
		if checked := one.Checked.UTC(); i == 0 || checked.Before(a.Checked) {
			a.Checked = checked
		}
		a.Differences += one.Differences
		at := one.Verified.UTC()
		verified = verified && !one.Verified.IsZero()
		if a.Verified == nil || at.Before(*a.Verified) {
			a.Verified = &at
		}
	}
	if !verified {
		a.Verified = nil
		return a
	}
	age := p.since(a.Verified)
	a.AgeSeconds = &age
	return a
}

// BlockedKey says of a blocked key what people need, as of a moment by the database's clock.
func BlockedKey(k reader.Blocked, now time.Time) Blocked {
	b := Blocked{Item: k.Key.Item, Location: k.Key.Location, ID: k.Key, Status: k.Status, More: k.Status.More, Version: int64(k.Version), Cause: CauseOf(k.Cause)}
	for _, r := range k.Status.Reasons {
		one := Reason{Code: r.Code.String(), TxnID: r.TxnID, Revision: int64(r.Revision)}
		if r.Day != 0 {
			one.Day = r.Day.String()
		}
		b.Reasons = append(b.Reasons, one)
	}
	if k.Since != nil {
		b.Since = &Since{At: k.Since.At.UTC(), Record: CauseOf(k.Since.Record), AgeSeconds: max(0, now.Sub(k.Since.At).Seconds()), Longer: k.Since.Longer}
	}
	return b
}

// CauseOf writes a source record's coordinates.
func CauseOf(c store.Cause) Cause {
	return Cause{TxnID: c.TxnID, Offset: int64(c.Offset), Revision: int64(c.Revision), Partition: int32(c.Partition)}
}
