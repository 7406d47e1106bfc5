package query

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"amends/internal/explain"
	"amends/internal/inspect"
	"amends/internal/ledger"
	"amends/internal/phrase"
	"amends/internal/store/postgres/reader"
)

// words writes for people: quantities at the namespace's scale, identifiers so that a terminal is safe, times in UTC.
type words struct{ scale int32 }

func (w words) quantity(units int64) string { return phrase.Quantity(units, w.scale) }

// signed writes what is added with its sign.
func (w words) signed(units *big.Int) string {
	if units.Sign() < 0 {
		return phrase.Scaled(units, w.scale)
	}
	return "+" + phrase.Scaled(units, w.scale)
}

func key(k ledger.StockKey) string { return inspect.Name(k.Item) + " " + inspect.Name(k.Location) }

func clock(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// arrived writes the broker's timestamp, which is for show.
func arrived(ms int64) string {
	if ms <= 0 {
		return "-"
	}
	return clock(time.UnixMilli(ms))
}

func published(p *reader.Publication, in ledger.Partition) string {
	if p == nil {
		return "not yet"
	}
	return fmt.Sprintf("%s at %d/%d", clock(p.At), in, p.Offset)
}

// payload writes what an assertion says.
func (w words) payload(p ledger.Payload) string {
	if p.State == ledger.Cancelled {
		return "cancelled"
	}
	return fmt.Sprintf("%s %s on %v", kindName(p.Kind), w.quantity(int64(p.Quantity)), p.Day)
}

func kindName(k ledger.Kind) string { return strings.ReplaceAll(k.String(), "_", " ") }

func (w words) standing(s explain.Standing) string {
	if s.Ambiguous {
		return "ambiguous"
	}
	return w.payload(s.Payload)
}

// frozen writes what was published of a transaction while its key was blocked.
func (w words) frozen(s *explain.Standing) string {
	if s == nil {
		return "nothing of it"
	}
	return w.standing(*s)
}

// record writes what a source record says.
func (w words) record(a *ledger.Assertion) string {
	return fmt.Sprintf("%s revision %d, %s", inspect.Name(a.TxnID), a.Revision, w.payload(a.Payload))
}

// cause writes what a record did: its revision before and after, and by how much it changed its transaction.
func (w words) cause(c *explain.Cause) string {
	a, b := &c.Assertion, c.Before
	switch {
	case c.Class == ledger.Conflict:
		return fmt.Sprintf("%s revision %d, %s contradicted by %s", inspect.Name(a.TxnID), a.Revision, w.standing(*b), w.payload(a.Payload))
	case b == nil:
		return w.record(a) + w.change(c)
	case b != c.Was:
		return fmt.Sprintf("%s revision %d -> %d, %s -> %s, published was %s%s", inspect.Name(a.TxnID), b.Revision, a.Revision, w.standing(*b), w.payload(a.Payload), w.frozen(c.Was), w.change(c))
	}
	text := fmt.Sprintf("%s revision %d -> %d, ", inspect.Name(a.TxnID), b.Revision, a.Revision)
	if p, q := b.Payload, a.Payload; !b.Ambiguous && p.State == ledger.Active && q.State == ledger.Active && p.Kind == q.Kind && p.Day == q.Day {
		return text + fmt.Sprintf("%s %s -> %s on %v", kindName(q.Kind), w.quantity(int64(p.Quantity)), w.quantity(int64(q.Quantity)), q.Day) + w.change(c)
	}
	return text + w.standing(*b) + " -> " + w.payload(a.Payload) + w.change(c)
}

func (w words) change(c *explain.Cause) string {
	if n, ok := c.Change(); ok && n.Sign() != 0 {
		return ": " + w.signed(n)
	}
	return ""
}

// value writes what an output version says.
func (w words) value(c *ledger.Change, threshold int64) string {
	switch {
	case c.Version == 0:
		return "-"
	case !c.Present:
		return "withdrawn"
	case c.Kind == ledger.Balance:
		return w.quantity(c.Close)
	case c.Kind == ledger.Alert:
		return w.alert(c.Previous, c.Close, threshold)
	}
	return status(c.Status)
}

func (w words) alert(previous, now, threshold int64) string {
	return fmt.Sprintf("%s -> %s below %s", w.quantity(previous), w.quantity(now), w.quantity(threshold))
}

func status(s *ledger.Status) string {
	if s.Blocked {
		return "BLOCKED " + inspect.Reasons(*s)
	}
	return "READY"
}

// headline is the first line of an answer: the balance, and all that must be known to read it.
func (w words) headline(a *explain.Answer, as ledger.Day, at *explain.Point) string {
	text := key(a.Key.Key)
	if as != 0 {
		text += fmt.Sprintf(" as of %v", as)
	}
	text += ": " + w.quantity(a.Balance.Close)
	var notes []string
	switch b := &a.Balance; {
	case b.Day == 0 && a.Status == nil:
		notes = append(notes, "the opening balance: no record was known")
	case b.Day == 0:
		notes = append(notes, "the opening balance: no day until then has a balance")
	case as == 0:
		notes = append(notes, fmt.Sprintf("as of %v", b.Day))
	case b.Day != as:
		notes = append(notes, fmt.Sprintf("the close of %v, the latest day before that has a balance", b.Day))
	}
	if a.Balance.Alert && a.Threshold != nil {
		notes = append(notes, "alert "+w.alert(a.Balance.Previous, a.Balance.Close, *a.Threshold))
	}
	if a.Blocked != nil {
		notes = append(notes, fmt.Sprintf("frozen since %s by %s", coordinates(a.Blocked.Partition, a.Blocked.Offset), status(a.Status)))
	}
	if at != nil {
		notes = append(notes, fmt.Sprintf("as known below %d/%d", a.Known.Partition, a.Known.Frontier))
	}
	if a.Known.Early {
		notes = append(notes, "nothing beyond is decided yet")
	}
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, "; ") + ")"
	}
	return text
}

func coordinates(p ledger.Partition, at ledger.Offset) string {
	return strconv.Itoa(int(p)) + "/" + strconv.FormatInt(int64(at), 10)
}
