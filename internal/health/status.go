package health

import (
	"fmt"
	"slices"
	"time"

	"amends/internal/phrase"
)

// State is the first word of status.
type State string

// The states, by their precedence (design section 8).
const (
	Stopped State = "STOPPED" // a partition stopped by a protocol violation
	Drift   State = "DRIFT"   // the last verification found one
	Held    State = "BLOCKED" // some key is blocked
	Late    State = "LATE"    // work waits for longer than it may
	OK      State = "OK"
)

// Codes of status.
const (
	codeStopped = 11
	codeDrift   = 5
	codeBlocked = 4
	codeLate    = 3
)

// DefaultMaxLag is how long work may wait before status says LATE.
const DefaultMaxLag = 10 * time.Second

// Status is the verdict on a namespace's progress.
type Status struct {
	Schema int    `json:"schema"`
	State  State  `json:"state"`
	Code   int    `json:"code"`
	Why    string `json:"why"` // "" when OK
	Progress
}

// Judge gives the verdict: the first that applies. An old or missing verification changes nothing.
func Judge(p *Progress, maxLag time.Duration) *Status {
	s := &Status{Schema: 1, State: OK, Progress: *p}
	s.Partitions = slices.Clone(p.Partitions)
	for i := range s.Partitions {
		s.Partitions[i].Measurements = nil
	}
	stopped := 0
	var first *Partition
	for i := range p.Partitions {
		if p.Partitions[i].Stop != nil {
			stopped++
			if first == nil {
				first = &p.Partitions[i]
			}
		}
	}
	switch seconds, what := oldest(p); {
	case stopped > 0:
		s.State, s.Code = Stopped, codeStopped
		s.Why = fmt.Sprintf("%s stopped; partition %d at output offset %d: %s", phrase.Counted(stopped, "partition"), first.Partition, first.Stop.Offset, first.Stop.Reason)
	case drifted(p) != "":
		s.State, s.Code, s.Why = Drift, codeDrift, drifted(p)
	case p.BlockedKeys > 0:
		s.State, s.Code = Held, codeBlocked
		s.Why = phrase.Counted(int(p.BlockedKeys), "key") + " blocked"
	case seconds > maxLag.Seconds():
		s.State, s.Code = Late, codeLate
		s.Why = fmt.Sprintf("%s for %s, longer than %v", what, Age(seconds), maxLag)
	}
	return s
}

// AuditedLast reports whether an audit looked later than the last recorded verification: its cycles that find nothing new are not
// recorded as one.
func AuditedLast(p *Progress) bool {
	return p.Audit != nil && (p.Verification == nil || !p.Audit.Checked.Before(p.Verification.Finished))
}

// drifted says what the last verification or audit cycle found, "" unless it was DRIFT. A short cycle that found nothing does not
// outweigh the verification before it, which may have compared more: a full one is recorded as a verification.
func drifted(p *Progress) string {
	switch {
	case AuditedLast(p) && p.Audit.Status == "DRIFT":
		return "the last audit cycle found " + phrase.Counted(int(p.Audit.Differences), "difference")
	case p.Verification != nil && p.Verification.Status == "DRIFT":
		return "the last verification found " + phrase.Counted(int(p.Verification.Differences), "difference")
	}
	return ""
}

// oldest returns what has waited for longest, and for how long.
func oldest(p *Progress) (seconds float64, what string) {
	if p.Lag.Seconds != nil {
		seconds, what = *p.Lag.Seconds, "a source record waits for a worker"
	}
	if p.Outbox.Seconds > seconds {
		seconds, what = p.Outbox.Seconds, "an output waits for the relay"
	}
	if p.View.Seconds > seconds {
		seconds, what = p.View.Seconds, "a published output waits for the view"
	}
	return seconds, what
}

// Age writes seconds for people: two units at most.
func Age(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
