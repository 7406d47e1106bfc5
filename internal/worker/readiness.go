package worker

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// readiness knows which services the role waits for, and says so when that changes.
type readiness struct {
	log    *slog.Logger
	report func(ready bool, reason string)
	away   map[string]string
	mu     sync.Mutex
}

func newReadiness(log *slog.Logger, report func(bool, string)) *readiness {
	return &readiness{log: log, report: report, away: map[string]string{}}
}

// set notes that a service is away because of err, or back when err is nil.
func (r *readiness) set(service string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, was := r.away[service]
	switch {
	case err == nil && !was, err != nil && was && r.away[service] == err.Error():
		return
	case err == nil:
		delete(r.away, service)
	default:
		r.away[service] = err.Error()
	}
	ready, reason := len(r.away) == 0, r.reason()
	switch {
	case ready:
		r.log.Info("ready")
	case !was:
		r.log.Warn("not ready", "reason", reason)
	}
	if r.report != nil {
		r.report(ready, reason)
	}
}

func (r *readiness) reason() string {
	var parts []string
	for service, why := range r.away {
		parts = append(parts, service+": "+why)
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}
