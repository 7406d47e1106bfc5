package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/report"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/store/postgres/reader"
	"amends/internal/verify"
)

// Defaults and limits.
const (
	DefaultEvery     = 10 * time.Second // between the starts of two cycles
	DefaultFullEvery = time.Hour        // between the starts of two full cycles
	shortBudget      = time.Minute      // of a cycle, at least
	saving           = 8 * time.Second  // to save the state at the end: a role drains within 10 s
	share            = 10               // while every cycle is a full one, they take at most one part in so many of the time
)

// Options say what is audited. Namespace, Manifest (bound), Topics, Source and Output are required.
type Options struct {
	Namespace *postgres.Namespace
	Manifest  *manifest.Manifest
	Topics    verify.Topics
	Source    func() (verify.Reader, error) // of the source topic's incarnation
	Output    func() (verify.Reader, error) // of the output topic's; only full cycles open it
	Every     time.Duration                 // between the starts of two cycles, DefaultEvery if 0
	FullEvery time.Duration                 // between the starts of two full cycles; 0 makes every cycle a full one
	Told      func(*Cycle)                  // called after every cycle; nil for nobody
	Logger    *slog.Logger                  // nil discards
}

// Cycle is one cycle of an audit. Why says what made it a full one, empty for one that compared what changed. Verified is
// when the partition that was verified longest ago was verified last, by the database's clock; zero while one never was.
type Cycle struct {
	*verify.Report
	Verified time.Time
	Now      time.Time // by the database's clock, at the end
	Why      string
	Changed  bool // the status is another than the last cycle's
}

// Auditor audits one namespace, for one goroutine.
type Auditor struct {
	Options
	job     *verify.Job
	source  *kept
	status  verify.Status // of the last cycle, "" before the first
	why     string        // why the next cycle must be a full one, "" if it need not
	basis   verify.Basis
	saved   map[ledger.Partition]int64 // source records in the saved state
	drifted map[ledger.Partition]bool  // partitions that differed and that no full cycle found equal since
	began   time.Time                  // when the last full cycle began, zero if none is known
	took    time.Duration              // how long it took
	trimmed time.Time                  // when old verifications were removed last
	doubted bool                       // a verification found a difference that no full cycle has looked at since
	found   time.Time                  // when that verification, or one before it, had found its difference; zero for none
	resumed bool
}

// New returns an auditor that has looked at nothing.
func New(o Options) *Auditor {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Every <= 0 {
		o.Every = DefaultEvery
	}
	a := &Auditor{Options: o, saved: map[ledger.Partition]int64{}, drifted: map[ledger.Partition]bool{}}
	a.source = &kept{open: o.Source}
	a.job = &verify.Job{Manifest: o.Manifest, Topics: o.Topics, Store: o.Namespace, Source: a.source.reader, Output: o.Output}
	return a
}

// Run audits until ctx ends, and returns its error, or what no further cycle can mend.
func (a *Auditor) Run(ctx context.Context) error {
	defer a.source.close()
	for {
		began := time.Now()
		c, err := a.cycle(ctx)
		switch {
		case ctx.Err() != nil:
			a.finish(ctx, none)
			return ctx.Err()
		case final(err):
			return err
		case err != nil:
			a.Logger.Warn("audit cycle failed; the next one tries again", "err", err)
		default:
			a.tell(c)
		}
		select {
		case <-ctx.Done():
		case <-time.After(a.pause(time.Since(began))):
		}
	}
}

// Once runs one cycle and saves the state for the next process.
func (a *Auditor) Once(ctx context.Context) (*Cycle, error) {
	defer a.source.close()
	c, err := a.cycle(ctx)
	if err != nil {
		return nil, err
	}
	a.finish(ctx, twentieth) // what is not saved is read again: the cost of a cycle follows what is new
	return c, nil
}

// pause is how long to wait after a cycle that took so long. While something differs, or a full one established nothing, every
// cycle is a full one.
func (a *Auditor) pause(took time.Duration) time.Duration {
	every := a.Every
	if len(a.drifted) > 0 || a.doubted || a.why != "" {
		every = max(every, min(share*a.took, a.FullEvery))
	}
	return max(every-took, 0)
}

// final reports whether no further cycle can do better.
func final(err error) bool {
	for _, e := range []error{verify.ErrUnbound, store.ErrSchema, store.ErrNoSchema, store.ErrNoNamespace, store.ErrConfig} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// cycle resumes if that is still to do, runs one cycle and records it.
func (a *Auditor) cycle(ctx context.Context) (*Cycle, error) {
	if !a.resumed {
		if err := a.resume(ctx); err != nil {
			return nil, err
		}
	}
	var err error
	if a.doubted, err = a.doubt(ctx); err != nil {
		return nil, err
	}
	r, why, err := a.compare(ctx)
	if err != nil {
		a.source.close()
		return nil, err
	}
	if r.Status == verify.Unavailable {
		a.source.close()
	}
	c := &Cycle{Report: r, Why: why, Changed: r.Status != a.status}
	err = a.record(ctx, c, time.Now().Add(-r.Elapsed))
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		c.Now = time.Now() // what was found counts all the same
		a.Logger.Warn("what the audit found was not recorded", "err", err)
	}
	if err == nil {
		a.status = r.Status // else the next cycle records the change
	}
	for _, p := range r.Parts {
		if p.Status == verify.Drift {
			a.drifted[p.Partition] = true
		} else if p.Verified && why != "" {
			delete(a.drifted, p.Partition)
		}
	}
	if why != "" {
		a.save(ctx, none)
	} else {
		a.save(ctx, million)
	}
	return c, nil
}

// compare runs one cycle, a full one where one is due or where what changed turns out not to be enough, and says why.
func (a *Auditor) compare(ctx context.Context) (r *verify.Report, why string, err error) {
	began, why := time.Now(), a.due()
	a.job.Timeout = max(shortBudget, a.Every)
	if why != "" {
		a.job.Timeout = max(shortBudget, a.FullEvery)
	}
	r, err = a.job.Audit(ctx, &a.basis, why != "")
	var moved *verify.MovedError
	switch {
	case errors.As(err, &moved):
		a.why = moved.Error()
		clear(a.saved) // this server may lack what was saved
		a.Logger.Warn("everything is recomputed", "why", a.why)
		return a.compare(ctx)
	case err != nil:
		return nil, why, err
	case why == "" && r.Status == verify.Unavailable:
		a.why = "the last cycle ended UNAVAILABLE" // what was established before need not hold any more
	case why != "":
		a.began, a.took = began, time.Since(began)
		if a.why = ""; r.Status == verify.Unavailable || slices.ContainsFunc(r.Parts, a.unproved) {
			a.why = why // nothing but another full cycle can tell
		}
	}
	return r, why, nil
}

// unproved reports whether a full cycle left a partition with nothing to go on from, for another reason than its stop.
func (a *Auditor) unproved(p verify.Part) bool {
	return p.Status == verify.Incomplete && !p.Stopped && !a.basis.Has(p.Partition)
}

// due says why the next cycle is a full one, "" if it is not.
func (a *Auditor) due() string {
	switch {
	case a.why != "":
		return a.why
	case len(a.drifted) > 0:
		return "something differs"
	case a.doubted:
		return "the last verification found a difference"
	case a.FullEvery <= 0, time.Since(a.began) >= a.FullEvery:
		return "it is due"
	}
	return ""
}

// record keeps what the cycle found: the partitions' rows always, a verification where it was a full one or the status is
// another than before, unless the newest one is young and says the same. What a verification found meanwhile stands: the next cycle
// is a full one because of it.
func (a *Auditor) record(ctx context.Context, c *Cycle, began time.Time) error {
	overtaken, err := a.overtaken(ctx)
	if err != nil {
		return fmt.Errorf("keep what the audit found: %w", err)
	}
	var parts []store.AuditCycle
	for _, p := range c.Parts {
		if p.Status == "" {
			continue
		}
		parts = append(parts, store.AuditCycle{Partition: p.Partition, Status: string(p.Status), Detail: p.Detail, Differences: p.Differences,
			Server: p.Cut.Server, Frontier: p.Cut.Frontier, Output: p.Cut.Output, Sequence: p.Cut.Sequence, Cause: p.Cut.Cause, Verified: p.Verified,
			Full: c.Why != "" && !overtaken && c.Status != verify.Unavailable && (p.Verified || p.Differences > 0)})
	}
	if err := a.Namespace.Upkeep().RecordAudit(ctx, parts); err != nil {
		return fmt.Errorf("keep what the audit found: %w", err)
	}
	if (c.Why != "" || c.Changed) && !overtaken {
		v := report.Verification(c.Report, a.Manifest.Config.QuantityScale, began)
		v.Audit = true
		if err := a.Namespace.RecordVerification(ctx, v); err != nil {
			return fmt.Errorf("keep what the audit found: %w", err)
		}
		a.trim(ctx)
	}
	state, err := a.state(ctx)
	if err != nil {
		return err
	}
	c.Now, c.Verified = state.Now, oldest(state, a.Manifest.Config.Partitions)
	return nil
}

// trim removes old verifications of audits, now and then. What is not removed harms nobody: an audit goes on without the privilege.
func (a *Auditor) trim(ctx context.Context) {
	if time.Since(a.trimmed) < store.SameAuditEvery {
		return
	}
	a.trimmed = time.Now()
	if err := a.Namespace.Upkeep().TrimVerifications(ctx); err != nil && ctx.Err() == nil {
		a.Logger.Warn("old verifications of audits were not removed", "err", err)
	}
}

// oldest is when the partition that was verified longest ago was verified last.
func oldest(s store.AuditState, partitions int32) (at time.Time) {
	if len(s.Partitions) < int(partitions) {
		return time.Time{}
	}
	for i, p := range s.Partitions {
		if i == 0 || p.Verified.Before(at) {
			at = p.Verified
		}
	}
	return at
}

func (a *Auditor) state(ctx context.Context) (state store.AuditState, err error) {
	err = a.Namespace.Look(ctx, func(s *reader.Snapshot) (err error) {
		state, err = s.AuditState(ctx)
		return err
	})
	return state, err
}

// tell says loudly what an operator must know, once a change, and hands the cycle on.
func (a *Auditor) tell(c *Cycle) {
	log := a.Logger.Info
	switch c.Status {
	case verify.Drift, verify.Unavailable:
		log = a.Logger.Error
	case verify.Incomplete, verify.Blocked:
		log = a.Logger.Warn
	}
	if c.Why != "" || c.Changed {
		log("audit", "status", c.Status, "answer", report.Headline(c.Report, a.Manifest.Config.QuantityScale), "full", c.Why, "verified", c.Verified)
	}
	if a.Told != nil {
		a.Told(c)
	}
}
