package oracle

import (
	"unicode/utf8"

	"amends/internal/ledger"
)

// The members of a value (S3), as positions in fields.
const (
	fSchema = iota
	fTxn
	fRevision
	fState
	fItem
	fLocation
	fDay
	fKind
	fQuantity
	fCount
)

const (
	cancelledFields = 1<<fSchema | 1<<fTxn | 1<<fRevision | 1<<fState | 1<<fItem | 1<<fLocation
	activeFields    = 1<<fCount - 1
)

// fields is a value after the syntax of S3 order 2 was found in order.
type fields struct {
	at      [fCount]member
	present uint
	unknown bool // another member name occurs
}

func fieldOf(name []byte) int {
	switch string(name) {
	case "schema":
		return fSchema
	case "txn_id":
		return fTxn
	case "revision":
		return fRevision
	case "state":
		return fState
	case "item":
		return fItem
	case "location":
		return fLocation
	case "day":
		return fDay
	case "kind":
		return fKind
	case "quantity":
		return fQuantity
	}
	return -1
}

// scanValue reads the syntax of a value: one object, every name once, at any depth.
func scanValue(b []byte, f *fields) bool {
	if !utf8.Valid(b) {
		return false
	}
	s := scanner{b: b}
	var rest names
	ok := s.object(func(name member) bool {
		said := name.bytes()
		i := fieldOf(said)
		if i < 0 {
			f.unknown = true
			if !rest.add(string(said)) {
				return false
			}
		} else if f.present&(1<<i) != 0 {
			return false
		}
		v, ok := s.value(1)
		if i >= 0 {
			f.at[i] = v
			f.present |= 1 << i
		}
		return ok
	})
	s.space()
	return ok && s.i == len(b)
}

// shapes reports whether every present member has the type and number form that S3 asks for.
func (f *fields) shapes() bool {
	for i := range f.at {
		want := text
		if i == fRevision || i == fQuantity || i == fSchema {
			want = whole
		}
		if got := f.at[i].shape; got != want && got != missing {
			return false
		}
	}
	return true
}

// decoded is a value that passed S3 orders 1 to 5.
type decoded struct {
	item, location, txn []byte
	revision            ledger.Revision
	payload             ledger.Payload
}

// decodeValue applies S3 orders 1 to 5, in this order, except the length of the key.
func decodeValue(b []byte, d *decoded) ledger.Rejection {
	if len(b) > ledger.MaxValueBytes {
		return ledger.TooLarge
	}
	var f fields
	if b == nil || !scanValue(b, &f) {
		return ledger.Malformed
	}
	schema := f.at[fSchema]
	if schema.shape != whole {
		return ledger.Malformed
	}
	if string(schema.raw) != "1" {
		return ledger.UnsupportedSchema
	}
	if f.unknown || f.at[fState].shape != text || !f.shapes() {
		return ledger.Malformed
	}
	switch string(f.at[fState].bytes()) {
	case "active":
		if f.present != activeFields {
			return ledger.Malformed
		}
		return f.active(d)
	case "cancelled":
		if f.present != cancelledFields {
			return ledger.Malformed
		}
		d.payload = ledger.Payload{State: ledger.Cancelled}
		return f.common(d)
	}
	return ledger.InvalidValue
}

// common reads what every assertion has.
func (f *fields) common(d *decoded) ledger.Rejection {
	d.item, d.location, d.txn = f.at[fItem].bytes(), f.at[fLocation].bytes(), f.at[fTxn].bytes()
	for _, id := range [...][]byte{d.item, d.location, d.txn} {
		if len(id) == 0 || len(id) > ledger.MaxIdentifierBytes {
			return ledger.InvalidValue
		}
	}
	n, ok := wholeNumber(f.at[fRevision].raw)
	if !ok || n == 0 {
		return ledger.InvalidValue
	}
	d.revision = ledger.Revision(n)
	return 0
}

// active reads an active assertion.
func (f *fields) active(d *decoded) ledger.Rejection {
	if code := f.common(d); code != 0 {
		return code
	}
	d.payload.State = ledger.Active
	least := int64(1)
	switch string(f.at[fKind].bytes()) {
	case "receipt":
		d.payload.Kind = ledger.Receipt
	case "issue":
		d.payload.Kind = ledger.Issue
	case "opening_count":
		d.payload.Kind, least = ledger.OpeningCount, 0
	case "closing_count":
		d.payload.Kind, least = ledger.ClosingCount, 0
	default:
		return ledger.InvalidValue
	}
	n, ok := wholeNumber(f.at[fQuantity].raw)
	if !ok || n < least {
		return ledger.InvalidValue
	}
	d.payload.Quantity = ledger.Quantity(n)
	if d.payload.Day, ok = calendarDay(f.at[fDay].bytes()); !ok {
		return ledger.InvalidValue
	}
	return 0
}

// wholeNumber reads digits; false where they say more than 2^63-1.
func wholeNumber(digits []byte) (int64, bool) {
	if len(digits) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range digits {
		n = n*10 + uint64(c-'0')
	}
	return int64(n), n <= 1<<63-1
}

// calendarDay reads YYYY-MM-DD, a real date of the years 1 to 9999, as days since 0000-12-31. It counts from a first
// of March, so that the leap day comes last: month m of such a year begins (153m+2)/5 days after it.
func calendarDay(b []byte) (ledger.Day, bool) {
	if len(b) != 10 || b[4] != '-' || b[7] != '-' {
		return 0, false
	}
	var digits [8]int
	for i, at := range [...]int{0, 1, 2, 3, 5, 6, 8, 9} {
		if b[at]-'0' > 9 {
			return 0, false
		}
		digits[i] = int(b[at] - '0')
	}
	year := digits[0]*1000 + digits[1]*100 + digits[2]*10 + digits[3]
	month, day := digits[4]*10+digits[5], digits[6]*10+digits[7]
	if year == 0 || month == 0 || month > 12 || day == 0 {
		return 0, false
	}
	y, m := year, month-3
	if m < 0 {
		y, m = y-1, m+12
	}
	starts := func(m int) int { return (153*m + 2) / 5 }
	length := starts(m+1) - starts(m)
	if month == 2 {
		length = 28
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			length = 29
		}
	}
	if day > length {
		return 0, false
	}
	return ledger.Day(y*365 + y/4 - y/100 + y/400 + starts(m) + day - 306), true
}

// decodeKey reads a broker key: exactly the two string members, in any spelling (S3).
func decodeKey(b []byte) (item, location []byte, ok bool) {
	if b == nil || !utf8.Valid(b) {
		return nil, nil, false
	}
	s := scanner{b: b}
	ok = s.object(func(name member) bool {
		v, ok := s.value(1)
		if !ok || v.shape != text {
			return false
		}
		switch said := string(name.bytes()); {
		case said == "item" && item == nil:
			item = v.bytes()
		case said == "location" && location == nil:
			location = v.bytes()
		default:
			return false
		}
		return true
	})
	s.space()
	return item, location, ok && s.i == len(b) && item != nil && location != nil
}
