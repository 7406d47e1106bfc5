package worker

import (
	"fmt"
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
	said   string // the reason as it was told last
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

// waits notes that somebody waits for a service because of err, or no longer when err is nil. Whoever waits as before, as a
// thousand partitions may every second, changes nothing.
func (r *readiness) waits(w wait, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(w, err)
}

// because says why the role waits for a service, if it still does: what is learnt late may be over.
func (r *readiness) because(service string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := wait{service, theRole}
	if _, waits := r.away[w]; waits {
		r.note(w, err)
	}
}

// note is waits for a caller that holds mu.
func (r *readiness) note(w wait, err error) {
	why, was := r.away[w]
	if err == nil && !was || err != nil && was && why == err.Error() {
		return
	}
	fresh := err != nil
	for other := range r.away {
		fresh = fresh && other.service != w.service
	}
	if err == nil {
		delete(r.away, w)
	} else {
		r.away[w] = err.Error()
	}
	r.tell(fresh)
}

// gone ends whatever partitions wait for: it came, or they were given away.
func (r *readiness) gone(partitions ...ledger.Partition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.away {
		if slices.Contains(partitions, w.who) {
			delete(r.away, w)
		}
	}
	r.tell(false)
}

// tell says what changed; fresh is that a service is waited for which nobody waited for before. The caller holds mu.
func (r *readiness) tell(fresh bool) {
	reason, before := r.reason(), r.said
	r.said = reason
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

// reason names each service once, with what the first of those who wait for it waits for and how many more do; empty when
// nothing is waited for.
func (r *readiness) reason() string {
	first, all := map[string]wait{}, map[string]int{}
	for w := range r.away {
		if f, seen := first[w.service]; !seen || w.who < f.who {
			first[w.service] = w
		}
		all[w.service]++
	}
	var parts []string
	for service, w := range first {
		part := service + ": " + r.away[w]
		if more := all[service] - 1; more > 0 {
			part += fmt.Sprintf(" (%d more wait for it)", more)
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}
