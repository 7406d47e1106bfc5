package fold

import "amends/internal/ledger"

// Touched says which days one assertion's change of authority touches, first before second; they are equal where it
// is one. The zero value touches the whole key.
type Touched struct {
	First  ledger.Day
	Second ledger.Day
}

// Move replaces what one transaction contributes, before by after (either may be zero: nothing), and returns the days
// that this touches. At least one of them is an active payload.
func (d *Days) Move(before, after ledger.Payload) Touched {
	if before.State == ledger.Active {
		d.Remove(before)
	}
	if after.State == ledger.Active {
		d.Add(after)
	}
	switch {
	case before.Day == 0:
		return Touched{after.Day, after.Day}
	case after.Day == 0:
		return Touched{before.Day, before.Day}
	}
	return Touched{min(before.Day, after.Day), max(before.Day, after.Day)}
}

// Step is one day of a refold: what is derived of it and what was published. Previous and Was are the derived and the
// published close of the latest earlier day that has one, or the opening balance.
type Step struct {
	Previous int64
	Was      int64
	Close    int64 // derived; meaningful where Active
	Old      int64 // published; meaningful where Present
	Day      ledger.Day
	Active   bool // the day has a balance
	Present  bool // a balance is published
	Alerted  bool // an alert is published
}

// Cursor walks the days of a refold in order. Step is valid after Next returned true.
type Cursor struct {
	Step     Step
	days     *Days
	entry    *day  // of Step
	chunk    []day // the chunk of the next day
	at       place // the next day
	prev     int64 // the derived and the published close before it
	was      int64
	opening  int64
	refolded int64
	started  ledger.Day
	failed   ledger.Day
	first    uint16
	second   uint16
	whole    bool
}

// Refold returns a cursor over the days whose outputs may differ from the published ones when touched days changed
// and everything else is as published. Where touched is zero that is not known and every day is walked.
func (d *Days) Refold(opening int64, touched Touched) Cursor {
	c := Cursor{days: d, prev: opening, was: opening, opening: opening, whole: touched == Touched{}}
	if c.whole {
		c.move(place{})
		return c
	}
	c.first, c.second = d.offset(touched.First), d.offset(touched.Second)
	c.jump(c.first)
	return c
}

// Next moves to the next day that has a balance or had one published, and returns false after the last one that may
// differ or at a close that does not fit int64.
func (c *Cursor) Next() bool {
	for {
		if c.at.i >= len(c.chunk) {
			if c.at.chunk+1 >= len(c.days.chunks) {
				return false
			}
			c.move(place{chunk: c.at.chunk + 1})
		}
		e := &c.chunk[c.at.i]
		if c.prev == c.was && !c.whole && e.at != c.first && e.at != c.second {
			if e.at > c.second {
				return false
			}
			c.jump(c.second)
			continue
		}
		c.at.i++
		if e.active > 0 || e.flags&flagPresent != 0 {
			return c.derive(e)
		}
	}
}

// derive fills in the step of a day and carries its closes on.
func (c *Cursor) derive(e *day) bool {
	c.entry = e
	s := &c.Step
	s.Day, s.Previous, s.Was, s.Old = c.days.day(e.at), c.prev, c.was, e.close
	s.Active, s.Present, s.Alerted = e.active > 0, e.flags&flagPresent != 0, e.flags&flagAlerted != 0
	if c.started == 0 {
		c.started = s.Day
	}
	if s.Active {
		closed, fits := c.prev+e.sum, true
		if e.flags&(flagCounted|flagWide) != 0 || (closed > c.prev) != (e.sum > 0) {
			closed, fits = c.days.derive(e, c.prev)
		}
		c.refolded++
		if !fits {
			c.failed = s.Day
			return false
		}
		s.Close, c.prev = closed, closed
	}
	if s.Present {
		c.was = s.Old
	}
	return true
}

// Versions returns the published versions of the step's balance and alert, 0 before the first.
func (c *Cursor) Versions() (balance, alert ledger.Version) {
	p := c.days.published(c.entry)
	return p.Balance, p.Alert
}

// move makes p, which seek returned or which begins a chunk, the next day.
func (c *Cursor) move(p place) {
	c.at, c.chunk = p, nil
	if p.chunk < len(c.days.chunks) {
		c.chunk = c.days.chunks[p.chunk]
	}
}

// jump moves to a touched day when everything before it is as published.
func (c *Cursor) jump(at uint16) {
	c.move(c.days.seek(at))
	c.prev = c.days.closeBefore(c.at, c.opening)
	c.was = c.prev
}

// Unrepresentable returns the earliest day whose close does not fit int64, 0 if none was met (S7). After it the
// cursor is spent.
func (c *Cursor) Unrepresentable() ledger.Day { return c.failed }

// Refolded returns how many closes were computed.
func (c *Cursor) Refolded() int64 { return c.refolded }

// Started returns the first day walked, 0 if none was.
func (c *Cursor) Started() ledger.Day { return c.started }

// Last returns the latest day having a balance, 0 if none has.
func (d *Days) Last() ledger.Day {
	for c := len(d.chunks) - 1; c >= 0; c-- {
		for i := len(d.chunks[c]) - 1; i >= 0; i-- {
			if e := &d.chunks[c][i]; e.active > 0 {
				return d.day(e.at)
			}
		}
	}
	return 0
}

// closeBefore returns the published close of the latest day before p, or the opening balance.
func (d *Days) closeBefore(p place, opening int64) int64 {
	for i := p.i - 1; i >= 0; i-- {
		if e := &d.chunks[p.chunk][i]; e.flags&flagPresent != 0 {
			return e.close
		}
	}
	for c := p.chunk - 1; c >= 0; c-- {
		for i := len(d.chunks[c]) - 1; i >= 0; i-- {
			if e := &d.chunks[c][i]; e.flags&flagPresent != 0 {
				return e.close
			}
		}
	}
	return opening
}
