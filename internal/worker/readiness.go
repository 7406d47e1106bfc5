package worker

import (
	"log/slog"
	"slices"
	"strings"
	"sync"

	"amends/internal/ledger"
)

// readiness knows which services the role and its partitions wait for, and says so when that changes.
type readiness struct {
	log    *slog.Logger
	report func(ready bool, reason string)
	away   map[wait]string
	mu     sync.Mutex
}

// wait is what somebody waits for: a partition, or the role itself.
type wait struct {
	service string
	who     ledger.Partition
}

const theRole ledger.Partition = -1

func newReadiness(log *slog.Logger, report func(bool, string)) *readiness {
	return &readiness{log: log, report: report, away: map[wait]string{}}
}

// set notes that the role finds a service away because of err, or back when err is nil.
func (r *readiness) set(service string, err error) { r.waits(wait{service, theRole}, err) }

// waits notes that somebody waits for a service because of err, or no longer when err is nil.
func (r *readiness) waits(w wait, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, fresh := r.reason(), err != nil
	for other := range r.away {
		fresh = fresh && other.service != w.service
	}
	if err == nil {
		delete(r.away, w)
	} else {
		r.away[w] = err.Error()
	}
	r.tell(before, fresh)
}

// gone ends whatever partitions wait for: it came, or they were given away.
func (r *readiness) gone(partitions ...ledger.Partition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.reason()
	for w := range r.away {
		if slices.Contains(partitions, w.who) {
			delete(r.away, w)
		}
	}
	r.tell(before, false)
}

// tell says what changed; fresh is that a service is waited for which nobody waited for before. The caller holds mu.
func (r *readiness) tell(before string, fresh bool) {
	reason := r.reason()
	switch {
	case reason == before:
		return
	case reason == "":
		r.log.Info("ready")
	case fresh:
		r.log.Warn("not ready", "reason", reason)
	}
	if r.report != nil {
		r.report(reason == "", reason)
	}
}

// reason names each service once with each of its causes; empty when nothing is waited for.
func (r *readiness) reason() string {
	var parts []string
	for w, why := range r.away {
		parts = append(parts, w.service+": "+why)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "; ")
}
