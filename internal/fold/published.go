package fold

import (
	"iter"
	"math"

	"amends/internal/ledger"
)

// Published is what was last published of one day (S8). Close is meaningful where Present.
type Published struct {
	Close   int64
	Balance ledger.Version // 0 before the first
	Alert   ledger.Version // 0 before the first
	Present bool           // the balance is present, not withdrawn
	Alerted bool           // the alert is present, not withdrawn
}

// Published returns what was last published of a day within the horizon, all zero if nothing was.
func (d *Days) Published(day ledger.Day) Published {
	if e := d.find(d.offset(day)); e != nil {
		return d.published(e)
	}
	return Published{}
}

// Publish sets what was last published of a day within the horizon, for a state that is being restored.
func (d *Days) Publish(day ledger.Day, p Published) {
	d.publish(d.enter(d.offset(day)), p)
}

// All yields the days with published outputs, withdrawn ones included, in order.
func (d *Days) All() iter.Seq2[ledger.Day, Published] {
	return func(yield func(ledger.Day, Published) bool) {
		for _, c := range d.chunks {
			for i := range c {
				p := d.published(&c[i])
				if (p.Balance > 0 || p.Alert > 0) && !yield(d.day(c[i].at), p) {
					return
				}
			}
		}
	}
}

// Commit notes the balances and alerts of one decision as published; it passes over the status. It reports whether
// they continue what was published, each with the next version and a real change (S8); where they do not, the days
// are of no further use. Days of changes are within the horizon and in order.
func (d *Days) Commit(changes []ledger.Change) bool {
	ok := true
	at := place{i: -1}
	for i := range changes {
		c := &changes[i]
		if c.Kind == ledger.TrustStatus {
			continue
		}
		offset := d.offset(c.Day)
		e := d.get(at)
		if e == nil || e.at != offset {
			at = d.next(at)
			if e = d.get(at); e == nil || e.at != offset { // not the day after, so look for it
				e = d.enter(offset)
				at = d.seek(offset)
			}
		}
		p := d.published(e)
		ok = p.take(c) && ok
		d.publish(e, p)
	}
	return ok
}

// take applies one change and reports whether it follows.
func (p *Published) take(c *ledger.Change) bool {
	version, present := &p.Balance, &p.Present
	if c.Kind == ledger.Alert {
		version, present = &p.Alert, &p.Alerted
	}
	follows := c.Version-1 == *version && (c.Present || *present)
	if c.Kind == ledger.Balance {
		follows = follows && !(c.Present && p.Present && c.Close == p.Close)
		p.Close = c.Close
	}
	*version, *present = c.Version, c.Present
	return follows
}

func (d *Days) published(e *day) Published {
	p := Published{Close: e.close, Balance: ledger.Version(e.balance), Alert: ledger.Version(e.alert),
		Present: e.flags&flagPresent != 0, Alerted: e.flags&flagAlerted != 0}
	if e.flags&flagVersions != 0 {
		r := d.rare[e.at]
		p.Balance, p.Alert = r.balance, r.alert
	}
	return p
}

func (d *Days) publish(e *day, p Published) {
	e.close = p.Close
	e.flags &^= flagPresent | flagAlerted
	if p.Present {
		e.flags |= flagPresent
	}
	if p.Alerted {
		e.flags |= flagAlerted
	}
	if p.Balance <= math.MaxUint32 && p.Alert <= math.MaxUint32 {
		e.balance, e.alert = uint32(p.Balance), uint32(p.Alert)
		return
	}
	r := d.rareOf(e)
	r.balance, r.alert = p.Balance, p.Alert
	e.flags |= flagVersions
}

// next returns the place after p.
func (d *Days) next(p place) place {
	if p.chunk < len(d.chunks) && p.i+1 == len(d.chunks[p.chunk]) {
		return place{p.chunk + 1, 0}
	}
	return place{p.chunk, p.i + 1}
}
