package mapping

import (
	"strings"
)

// record is what a row says, apart from who says it.
type record struct {
	day       dayOf
	quantity  quantityOf
	kinds     kinds
	cancelled []condition
}

// dayOf reads a business day.
type dayOf struct {
	value  template
	format dateFormat
}

// quantityOf reads a quantity.
type quantityOf struct {
	value    template
	decimal  byte
	group    string // between thousands, "" for none
	absolute bool   // the sign is not looked at
	zeroOut  bool   // movements of nothing are left out
}

// firstSeen is the revision that is counted.
const firstSeen = "first_seen"

// mapper compiles a whole mapping file.
func (c *compiler) mapper(file node) (*Mapper, error) {
	m := &Mapper{scale: c.scale, seen: newCounter(), groups: newCounter()}
	if err := c.ordinalOf(file, m); err != nil {
		return nil, err
	}
	for _, field := range []struct {
		name string
		to   *template
	}{{"item", &m.item}, {"location", &m.location}, {"txn_id", &m.txn}} {
		n, ok := file.get(field.name)
		if !ok {
			return nil, &Error{Reason: field.name + " is missing; it is text with columns in it, as in " + field.name + `: "{sku}"`}
		}
		var err error
		if *field.to, err = c.template(n, field.name); err != nil {
			return nil, err
		}
	}
	if err := c.revisionOf(file, m); err != nil {
		return nil, err
	}
	if n, ok := file.get("leave_out"); ok {
		var err error
		if m.leaveOut, err = c.conditions(n, "leave_out"); err != nil {
			return nil, err
		}
	}
	m.first = record{quantity: quantityOf{decimal: '.'}}
	for _, name := range []string{"day", "quantity", "kind"} {
		if _, ok := file.get(name); !ok {
			return nil, &Error{Reason: name + " is missing"}
		}
	}
	if err := c.record(file, &m.first); err != nil {
		return nil, err
	}
	return m, c.revised(file, m)
}

func (c *compiler) ordinalOf(file node, m *Mapper) error {
	n, ok := file.get("ordinal")
	if !ok {
		return nil
	}
	if err := n.known("ordinal"); err != nil {
		return err
	}
	within, ok := n.get("within")
	if !ok {
		return n.errorf("ordinal: within: the columns of the group are expected")
	}
	names, err := within.strings("ordinal: within")
	if err != nil {
		return err
	}
	for _, name := range names {
		i, err := c.column(name)
		if err != nil {
			return within.errorf("ordinal: within: %v", err)
		}
		m.within = append(m.within, i)
	}
	c.ordinal = true
	return nil
}

func (c *compiler) revisionOf(file node, m *Mapper) (err error) {
	n, ok := file.get("revision")
	if !ok {
		return &Error{Reason: `revision is missing; it is 1, a column as in "{revision}", or first_seen: 1 for the first row of a transaction, 2 for the next`}
	}
	if n.kind == scalar && n.text == firstSeen {
		m.firstSeen = true
		return nil
	}
	m.revision, err = c.template(n, "revision")
	return err
}

// record compiles those of day, quantity, kind and cancelled that an object has; the others stay.
func (c *compiler) record(n node, r *record) (err error) {
	if day, ok := n.get("day"); ok {
		if r.day, err = c.dayOf(day, r.day); err != nil {
			return err
		}
	}
	if quantity, ok := n.get("quantity"); ok {
		if r.quantity, err = c.quantityOf(quantity, r.quantity); err != nil {
			return err
		}
	}
	if kind, ok := n.get("kind"); ok {
		if r.kinds, err = c.kinds(kind); err != nil {
			return err
		}
	}
	if test, ok := n.get("cancelled"); ok {
		r.cancelled, err = c.conditions(test, "cancelled")
	}
	return err
}

// revised compiles the rule of a second record.
func (c *compiler) revised(file node, m *Mapper) error {
	n, ok := file.get("revised")
	if !ok {
		return nil
	}
	if err := n.known("revised"); err != nil {
		return err
	}
	when, ok := n.get("when")
	if !ok || len(n.entries) < 2 {
		return n.errorf("revised: when, and what the second record says otherwise (day, quantity, kind or cancelled), are expected")
	}
	test, err := c.condition(when, "revised: when")
	if err != nil {
		return err
	}
	second := m.first
	if err := c.record(n, &second); err != nil {
		return err
	}
	m.revisedWhen, m.second = &test, &second
	return nil
}

// dayOf compiles a day; what it does not say is as before.
func (c *compiler) dayOf(n node, before dayOf) (d dayOf, err error) {
	d = before
	if d.format.parts == nil {
		d.format, _ = parseFormat("YYYY-MM-DD") // it is one
	}
	value := n
	if n.kind != scalar {
		if err := n.known("day"); err != nil {
			return d, err
		}
		var ok bool
		if value, ok = n.get("value"); !ok {
			return d, n.errorf(`day: value is missing, as in {value: "{date}", format: DD.MM.YYYY}`)
		}
		if format, ok := n.get("format"); ok {
			text, err := format.string("day: format")
			if err != nil {
				return d, err
			}
			if d.format, err = parseFormat(text); err != nil {
				return d, format.errorf("day: format: %v", err)
			}
		}
	}
	d.value, err = c.template(value, "day")
	return d, err
}

// quantityOf compiles a quantity; what it does not say is as before.
func (c *compiler) quantityOf(n node, before quantityOf) (q quantityOf, err error) {
	q = before
	value := n
	if n.kind != scalar {
		if err := n.known("quantity"); err != nil {
			return q, err
		}
		var ok bool
		if value, ok = n.get("value"); !ok {
			return q, n.errorf(`quantity: value is missing, as in {value: "{amount}", decimal: ","}`)
		}
		if err := c.numerals(n, &q); err != nil {
			return q, err
		}
	}
	q.value, err = c.template(value, "quantity")
	return q, err
}

// numerals compiles how a number is written.
func (c *compiler) numerals(n node, q *quantityOf) error {
	if m, ok := n.get("decimal"); ok {
		word, err := m.word("quantity: decimal", ".", ",")
		if err != nil {
			return err
		}
		q.decimal = word[0]
	}
	if m, ok := n.get("thousands"); ok {
		word, err := m.word("quantity: thousands", ",", ".", "'", " ", "\u00a0", "\u202f", "none")
		if err != nil {
			return err
		}
		q.group = strings.TrimPrefix(word, "none")
	}
	if q.group == string(q.decimal) {
		return n.errorf("quantity: decimal and thousands are both %q", q.group)
	}
	if m, ok := n.get("sign"); ok {
		word, err := m.word("quantity: sign", "refuse", "ignore")
		if err != nil {
			return err
		}
		q.absolute = word == "ignore"
	}
	if m, ok := n.get("zero"); ok {
		word, err := m.word("quantity: zero", "refuse", "leave_out")
		if err != nil {
			return err
		}
		q.zeroOut = word == "leave_out"
	}
	return nil
}
