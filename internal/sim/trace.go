package sim

import (
	"fmt"

	"amends/internal/sim/serial"
)

// trace is what a schedule did: its hash always, its text where somebody wants to read it.
type trace struct {
	hash uint64
	text []string
	keep bool
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// say notes what happens. Schedules that said the same did the same.
func (w *World) say(what string, a, b int64) {
	h := w.trace.hash
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * fnvPrime
	}
	h = (h ^ uint64(a)) * fnvPrime
	h = (h ^ uint64(b)) * fnvPrime
	w.trace.hash = h
	if w.trace.keep {
		w.trace.text = append(w.trace.text, fmt.Sprintf("%s%-16s %d %d", indents[min(w.depth, len(indents)-1)], what, a, b))
	}
}

var indents = [...]string{"", "  ", "    "}

func (w *World) violate(invariant, detail string, args ...any) {
	if w.violation == nil {
		w.violation = &serial.Violation{Invariant: invariant, Detail: fmt.Sprintf(detail, args...)}
		w.say("VIOLATION "+w.violation.Error(), 0, 0)
	}
}
