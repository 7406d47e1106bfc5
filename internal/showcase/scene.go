package showcase

import (
	"context"
	"fmt"
	"strings"
	"time"

	"amends/internal/ledger"
	"amends/internal/store"
)

// scene is what the journal says of a few decisions of one stock key, and of what had been published before them.
type scene struct {
	told      map[output]ledger.Change // last version before the scene
	decisions []ledger.Decision
	outputs   int
}

type output struct {
	day  ledger.Day
	kind ledger.OutputKind
}

// readScene reads count decisions of partition 0 from offset first on.
func readScene(ctx context.Context, p Pipeline, first ledger.Offset, count int) (*scene, error) {
	sc := &scene{told: map[output]ledger.Change{}}
	err := p.Snapshot(ctx, func(s store.Snapshot) error {
		return s.Journal(ctx, 0, func(d *ledger.Decision) error {
			switch {
			case d.Offset < first:
				for _, c := range d.Changes {
					sc.told[output{c.Day, c.Kind}] = c
				}
			case d.Offset < first+ledger.Offset(count):
				kept := *d
				kept.Changes = append([]ledger.Change(nil), d.Changes...)
				sc.decisions = append(sc.decisions, kept)
				sc.outputs += len(d.Changes)
			}
			return nil
		})
	})
	if err == nil && len(sc.decisions) != count {
		err = fmt.Errorf("read journal: %d of %d decisions from offset %d", len(sc.decisions), count, first)
	}
	return sc, err
}

// published lists movements as they were first told.
func (s *scene) published() []string {
	lines := []string{"What was published"}
	for _, d := range s.decisions {
		a, note, closing := d.Assertion.Payload, "", ""
		for _, c := range d.Changes {
			switch c.Kind {
			case ledger.Balance:
				closing = fmt.Sprint(c.Close)
			case ledger.Alert:
				note = "alert: below the threshold"
			}
		}
		lines = append(lines, fmt.Sprintf("%v  %-7v %4d  %-28s close %4s", a.Day, a.Kind, a.Quantity, note, closing))
	}
	return lines
}

// repaired says what one decision changed, day by day.
func (s *scene) repaired() []string {
	var days []string
	at := ledger.Day(0)
	for _, d := range s.decisions {
		for _, c := range d.Changes {
			if c.Kind == ledger.TrustStatus {
				continue
			}
			if c.Day != at {
				days = append(days, c.Day.String()[5:])
				at = c.Day
			}
			days[len(days)-1] += " " + s.change(c)
		}
	}
	return []string{strings.Join(days, "   ")}
}

// change puts one output version into words.
func (s *scene) change(c ledger.Change) string {
	before, known := s.told[output{c.Day, c.Kind}]
	switch {
	case c.Kind == ledger.Alert && c.Present:
		return "alert"
	case c.Kind == ledger.Alert:
		return "alert withdrawn"
	case !c.Present:
		return fmt.Sprintf("%d → withdrawn (version %d stays as a tombstone: a delayed old message cannot bring it back)", before.Close, c.Version)
	case known && before.Present:
		return fmt.Sprintf("%d → %d", before.Close, c.Close)
	}
	return fmt.Sprintf("%d", c.Close)
}

// brief rounds a duration for people.
func brief(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", max(d.Milliseconds(), 1))
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
