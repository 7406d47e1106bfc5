package audit

import "amends/internal/verify"

// kept is the reader of the source, kept open from cycle to cycle.
type kept struct {
	open func() (verify.Reader, error)
	held verify.Reader
	used bool
}

// reader returns the kept reader, or where that is in use one of its own: a full cycle reads the source twice at once.
func (k *kept) reader() (verify.Reader, error) {
	if k.used {
		return k.open()
	}
	if k.held == nil {
		r, err := k.open()
		if err != nil {
			return nil, err
		}
		k.held = r
	}
	k.used = true
	return lent{k.held, k}, nil
}

// close ends the kept reader; the next use opens another.
func (k *kept) close() {
	if k.held != nil {
		k.held.Close()
	}
	k.held, k.used = nil, false
}

// lent is the kept reader for one cycle: closing it gives it back.
type lent struct {
	verify.Reader
	from *kept
}

// Close gives the reader back.
func (l lent) Close() { l.from.used = false }
