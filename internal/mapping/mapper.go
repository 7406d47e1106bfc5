package mapping

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"amends/internal/ledger"
)

// Mapper maps the rows of one pass over a file, in their order.
type Mapper struct {
	item        template
	location    template
	txn         template
	revision    template
	first       record
	second      *record // of rows that revisedWhen holds of
	revisedWhen *condition
	leaveOut    []condition
	within      []int // columns of the group whose rows are numbered
	seen        *counter
	groups      *counter
	key         []string
	said        []ledger.Assertion
	scale       int
	firstSeen   bool
}

// Result is what a row says.
type Result struct {
	Assertions []ledger.Assertion // one, or two where the row is also its own correction; the mapper's until the next row
	LeftOut    string             // why the row says nothing: the part of the mapping file, "" where it says something
	Problem    string             // why it cannot be read, all of it with semicolons between, "" where it can
}

// row is one row while it is mapped.
type row struct {
	fields  []string
	ordinal string
}

// Map returns what a row says. Its only error is ErrTooMany.
func (m *Mapper) Map(fields []string) (Result, error) {
	r := row{fields: fields}
	if m.within != nil {
		m.key = m.key[:0]
		for _, i := range m.within {
			m.key = append(m.key, fields[i])
		}
		n, err := m.groups.next(1, m.key...)
		if err != nil {
			return Result{}, err
		}
		r.ordinal = strconv.FormatUint(uint64(n), 10)
	}
	for i := range m.leaveOut {
		if holds, bad := m.holds(&m.leaveOut[i], &r, &m.first); bad != "" || holds {
			return Result{LeftOut: "leave_out " + strconv.Itoa(i+1), Problem: bad}, nil
		}
	}
	m.said = m.said[:0]
	payload, out, bad := m.payload(&r, &m.first)
	if out != "" {
		return Result{LeftOut: out}, nil
	}
	a := ledger.Assertion{Key: ledger.StockKey{Item: m.item.of(&r), Location: m.location.of(&r)}, TxnID: m.txn.of(&r), Payload: payload}
	if bad = and(bad, identity(&a)); bad != "" {
		return Result{Problem: bad}, nil
	}
	m.said = append(m.said, a)
	if m.second != nil {
		if bad := m.secondOf(&r, a); bad != "" {
			return Result{Problem: bad}, nil
		}
	}
	if bad, err := m.number(&r); bad != "" || err != nil {
		return Result{Problem: bad}, err
	}
	return Result{Assertions: m.said}, nil
}

// secondOf adds the second record of a row that is also its own correction.
func (m *Mapper) secondOf(r *row, a ledger.Assertion) string {
	holds, bad := m.holds(m.revisedWhen, r, &m.first)
	if bad != "" || !holds {
		return bad
	}
	var out string
	a.Payload, out, bad = m.payload(r, m.second)
	if bad == "" && out == "" {
		m.said = append(m.said, a)
	}
	return bad
}

// and joins what is wrong with one row; either may be "".
func and(bad, more string) string {
	if bad == "" || more == "" {
		return bad + more
	}
	return bad + "; " + more
}

// identity names what S3 would refuse without saying which column it came from.
func identity(a *ledger.Assertion) (bad string) {
	for _, part := range []struct{ name, value string }{{"item", a.Key.Item}, {"location", a.Key.Location}, {"txn_id", a.TxnID}} {
		if !ledger.ValidIdentifier(part.value) {
			bad = and(bad, fmt.Sprintf("%s %.60q is not 1 to 512 bytes of text", part.name, part.value))
		}
	}
	return bad
}

// number gives the row's records their revisions.
func (m *Mapper) number(r *row) (string, error) {
	revision := ledger.Revision(0)
	if m.firstSeen {
		a := &m.said[0]
		n, err := m.seen.next(uint32(len(m.said)), a.Key.Item, a.Key.Location, a.TxnID)
		if err != nil {
			return "", err
		}
		revision = ledger.Revision(n)
	} else {
		text := m.revision.of(r)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || !digits(text) {
			return fmt.Sprintf("revision %q is not a whole number of 1 to 2^63-1", text), nil
		}
		if n > math.MaxInt64-int64(len(m.said)-1) {
			return fmt.Sprintf("revision %q has no next one for the second record of its row", text), nil
		}
		revision = ledger.Revision(n)
	}
	for i := range m.said {
		m.said[i].Revision = revision + ledger.Revision(i)
	}
	return "", nil
}

// payload returns what a record says, or why it is left out, or why it cannot be read.
func (m *Mapper) payload(r *row, as *record) (p ledger.Payload, out, bad string) {
	is, bad := m.outcome(r, as)
	switch {
	case bad != "":
		if as.day.value.of(r) != "" { // a cancelled row may have none
			_, wrong := as.day.of(r)
			bad = and(bad, wrong)
		}
		return p, "", bad
	case is == leftOut:
		return p, "kind", ""
	case is == cancelled:
		return ledger.Payload{State: ledger.Cancelled}, "", ""
	}
	n, bad := m.quantity(r, as)
	switch ignored := is.movement() && (as.quantity.absolute || as.kinds.bySign); {
	case bad != "":
	case n.negative && n.units != 0 && !ignored:
		bad = fmt.Sprintf("quantity %q is negative, and %s has none below 0; kind may choose by sign, or quantity have sign: ignore", as.quantity.value.of(r), outcomes[is])
	case n.units == 0 && is.movement() && as.quantity.zeroOut:
		return p, "quantity: zero", ""
	case n.units == 0 && is.movement():
		bad = fmt.Sprintf("quantity %q of %s is 0; quantity: zero: leave_out leaves such rows out", as.quantity.value.of(r), outcomes[is])
	}
	day, wrong := as.day.of(r)
	if bad = and(bad, wrong); bad != "" {
		return p, "", bad
	}
	return ledger.Payload{State: ledger.Active, Day: day, Kind: is.kind(), Quantity: ledger.Quantity(n.units)}, "", ""
}

// of reads a row's day, or says why it cannot be read.
func (d *dayOf) of(r *row) (ledger.Day, string) {
	text := d.value.of(r)
	day, ok := d.format.parse(text)
	if !ok {
		return 0, fmt.Sprintf("day %q is no date as %s", text, d.format.source)
	}
	return day, ""
}

// outcome says what a record is.
func (m *Mapper) outcome(r *row, as *record) (outcome, string) {
	for i := range as.cancelled {
		if holds, bad := m.holds(&as.cancelled[i], r, as); bad != "" || holds {
			return cancelled, bad
		}
	}
	if as.kinds.values != nil {
		value := r.fields[as.kinds.index]
		if is, ok := as.kinds.values[value]; ok {
			return is, ""
		}
		if as.kinds.otherwise != unknown {
			return as.kinds.otherwise, ""
		}
		return unknown, fmt.Sprintf("column %q is %q, which is none of the values of kind, and it has no otherwise", as.kinds.source, value)
	}
	for _, rule := range as.kinds.rules {
		if rule.when == nil {
			return rule.is, ""
		}
		if holds, bad := m.holds(rule.when, r, as); bad != "" || holds {
			return rule.is, bad
		}
	}
	return unknown, "no rule of kind holds of the row"
}

// holds reports whether a condition holds of a row, or why that cannot be said.
func (m *Mapper) holds(c *condition, r *row, as *record) (bool, string) {
	switch c.test {
	case "is", "is_not":
		return slices.Contains(c.values, r.fields[c.index]) == (c.test == "is"), ""
	case "starts_with":
		return strings.HasPrefix(r.fields[c.index], c.prefix), ""
	case "empty":
		return (r.fields[c.index] == "") == c.empty, ""
	case "differs_from":
		return r.fields[c.index] != r.fields[c.other], ""
	case "all":
		for i := range c.all {
			if holds, bad := m.holds(&c.all[i], r, as); bad != "" || !holds {
				return false, bad
			}
		}
		return true, ""
	}
	n, bad := m.quantity(r, as)
	return bad == "" && (n.units == 0) == c.zero && (n.negative && n.units != 0) == c.negative, bad
}

// quantity reads the number of a record.
func (m *Mapper) quantity(r *row, as *record) (number, string) {
	n, bad := as.quantity.parse(as.quantity.value.of(r), m.scale)
	if bad != "" {
		bad = "quantity " + bad
	}
	return n, bad
}

// of returns the text of a template for a row.
func (t *template) of(r *row) string {
	if len(t.parts) == 1 {
		return t.parts[0].of(r)
	}
	var b strings.Builder
	for _, p := range t.parts {
		b.WriteString(p.of(r))
	}
	return b.String()
}

func (p *part) of(r *row) string {
	switch p.index {
	case isLiteral:
		return p.literal
	case isOrdinal:
		return r.ordinal
	}
	return r.fields[p.index]
}
