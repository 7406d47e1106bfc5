package wire

import (
	"amends/internal/ledger"
)

// The members of a source record's value (S3), in the order in which they are written.
const (
	schemaMember = iota
	txnMember
	revisionMember
	stateMember
	itemMember
	locationMember
	dayMember
	kindMember
	quantityMember
	memberCount
)

// activeOnly is the first of the members that only an active assertion has.
const activeOnly = dayMember

var memberNames = [memberCount]string{"schema", "txn_id", "revision", "state", "item", "location", "day", "kind", "quantity"}

// memberOf returns the member of that name, -1 if there is none.
func memberOf(name []byte) int {
	switch string(name) {
	case "schema":
		return schemaMember
	case "txn_id":
		return txnMember
	case "revision":
		return revisionMember
	case "state":
		return stateMember
	case "item":
		return itemMember
	case "location":
		return locationMember
	case "day":
		return dayMember
	case "kind":
		return kindMember
	case "quantity":
		return quantityMember
	}
	return -1
}

// ParseValue reads one value of S3 and returns its assertion, or the first rejection of rows 1 to 5 that applies with the
// reason and the place. What needs the configuration, the broker key or the partition is Decoder.Decode's.
func ParseValue(value []byte) (ledger.Assertion, ledger.Rejection, *Problem) {
	if len(value) > ledger.MaxValueBytes {
		return ledger.Assertion{}, ledger.TooLarge, &Problem{Reason: "the value is over 65,536 bytes", Column: ledger.MaxValueBytes + 1}
	}
	var p valueParser
	if code := p.parse(value); code != 0 {
		return ledger.Assertion{}, code, p.problem
	}
	return ledger.Assertion{
		Key:      ledger.StockKey{Item: string(p.item), Location: string(p.location)},
		TxnID:    string(p.txnID),
		Revision: p.revision,
		Payload:  p.payload,
	}, 0, nil
}

// valueParser reads values one after the other. The byte slices live until the next parse.
type valueParser struct {
	scanner
	members  [memberCount]token
	unknown  token // the first member of no known name
	txnID    []byte
	item     []byte
	location []byte
	revision ledger.Revision
	payload  ledger.Payload
}

// parse applies rows 2 to 5 of S3 to value, which is within its limit; after a rejection problem says why.
func (p *valueParser) parse(value []byte) ledger.Rejection {
	p.reset(value)
	p.members = [memberCount]token{}
	p.unknown = token{}
	p.scan()
	schema := p.members[schemaMember]
	switch {
	case p.problem != nil:
		return ledger.Malformed
	case schema.kind == noToken:
		p.fail(len(value), "schema is missing")
		return ledger.Malformed
	case schema.kind != wholeToken:
		p.fail(schema.from, "schema is not a whole number")
		return ledger.Malformed
	case schema.to-schema.from != 1 || value[schema.from] != '1':
		p.fail(schema.from, "schema is not 1")
		return ledger.UnsupportedSchema
	}
	if p.shape(); p.problem != nil {
		return ledger.Malformed
	}
	if p.values(); p.problem != nil {
		return ledger.InvalidValue
	}
	return 0
}

// scan reads the whole text by row 2 and keeps where each member's value stands.
func (p *valueParser) scan() {
	p.open()
	for first := true; ; first = false {
		name, more := p.member(first)
		if !more {
			break
		}
		text := p.unescaped(name)
		i := memberOf(text)
		switch {
		case i < 0:
			p.names = append(p.names, nameAt{text, name.from})
			if p.unknown.kind == noToken {
				p.unknown = name
			}
		case p.members[i].kind != noToken:
			p.fail(name.from, "the name "+quoted(text)+" stands twice in one object")
			return
		}
		v := p.value(1)
		if i >= 0 {
			p.members[i] = v
		}
	}
	p.distinct(0)
	p.end()
}

// shape applies row 4: names, types, number forms, and which members there must be.
func (p *valueParser) shape() {
	if p.unknown.kind != noToken {
		p.fail(p.unknown.from, "unknown member "+quoted(p.unescaped(p.unknown)))
		return
	}
	for i := txnMember; i < memberCount; i++ {
		want, words := byte(stringToken), " is not a string"
		if i == revisionMember || i == quantityMember {
			want, words = wholeToken, " is not a whole number: digits only"
		}
		if m := p.members[i]; m.kind != noToken && m.kind != want {
			p.fail(m.from, memberNames[i]+words)
			return
		}
	}
	if p.members[stateMember].kind == noToken {
		p.fail(len(p.src), "state is missing")
		return
	}
	switch p.state() {
	case ledger.Active:
		p.require(memberCount)
	case ledger.Cancelled:
		p.require(activeOnly)
		for i := activeOnly; i < memberCount; i++ {
			if m := p.members[i]; m.kind != noToken {
				p.fail(m.from, "a cancelled assertion has no "+memberNames[i])
			}
		}
	}
}

// require fails for the first of the members before limit that is missing.
func (p *valueParser) require(limit int) {
	for i := txnMember; i < limit; i++ {
		if p.members[i].kind == noToken {
			p.fail(len(p.src), memberNames[i]+" is missing")
			return
		}
	}
}

// state returns the state named by the value, 0 for any other string.
func (p *valueParser) state() ledger.State {
	switch string(p.unescaped(p.members[stateMember])) {
	case "active":
		return ledger.Active
	case "cancelled":
		return ledger.Cancelled
	}
	return 0
}

// values applies row 5 and keeps what was read.
func (p *valueParser) values() {
	p.payload = ledger.Payload{State: p.state()}
	if p.payload.State == 0 {
		m := p.members[stateMember]
		p.fail(m.from, "state "+quoted(p.unescaped(m))+" is neither active nor cancelled")
		return
	}
	p.txnID = p.identifier(txnMember)
	p.item = p.identifier(itemMember)
	p.location = p.identifier(locationMember)
	p.revision = ledger.Revision(p.whole(revisionMember, 1))
	if p.payload.State != ledger.Active {
		return
	}
	var ok bool
	day := p.members[dayMember]
	if p.payload.Day, ok = ledger.ParseDay(string(p.unescaped(day))); !ok {
		p.fail(day.from, "day "+quoted(p.unescaped(day))+" is not a date of 0001-01-01 to 9999-12-31")
	}
	kind := p.members[kindMember]
	if p.payload.Kind, ok = ledger.ParseKind(string(p.unescaped(kind))); !ok {
		p.fail(kind.from, "kind "+quoted(p.unescaped(kind))+" is not receipt, issue, opening_count or closing_count")
	}
	least := int64(1)
	if p.payload.Kind.IsCount() {
		least = 0
	}
	p.payload.Quantity = ledger.Quantity(p.whole(quantityMember, least))
}

func (p *valueParser) identifier(i int) []byte {
	m := p.members[i]
	b := p.unescaped(m)
	if len(b) < 1 || len(b) > ledger.MaxIdentifierBytes {
		p.fail(m.from, memberNames[i]+" is not 1 to 512 bytes")
	}
	return b
}

func (p *valueParser) whole(i int, least int64) int64 {
	m := p.members[i]
	n, ok := parseWhole(p.src[m.from:m.to])
	if !ok || n < least {
		p.fail(m.from, memberNames[i]+" is out of range")
	}
	return n
}

// parseWhole reads digits, and reports whether they fit int64.
func parseWhole(digits []byte) (int64, bool) {
	n, ok := parseUnsigned(digits)
	return int64(n), ok && n <= ledger.MaxCounter
}

// parseUnsigned reads up to 19 digits, and reports whether there were no more.
func parseUnsigned(digits []byte) (uint64, bool) {
	if len(digits) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range digits {
		n = n*10 + uint64(c-'0')
	}
	return n, true
}
