package oracle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"amends/internal/ledger"
)

// StateFormat is the version of what AppendState writes. A change of what is written, or of what it means, raises it.
const StateFormat = 1

// ErrState: bytes are not what AppendState wrote for this configuration. The caller reads the source again.
var ErrState = errors.New("not a saved state of the oracle")

// AppendState appends everything that Restore needs to go on. It says only what records said, not what follows from them:
// totals, conflicts and expectations are derived again. About 20 bytes a transaction; keys in the order of All, so that
// equal states give equal bytes.
func (o *Oracle) AppendState(b []byte) []byte {
	b = binary.AppendVarint(b, o.counts.Records)
	b = binary.AppendVarint(b, o.counts.Rejected)
	for _, n := range o.counts.ByCode {
		b = binary.AppendVarint(b, n)
	}
	for _, n := range o.counts.ByClass {
		b = binary.AppendVarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(len(o.keys)))
	for _, k := range o.ordered() {
		b = appendString(appendString(b, k.name.Item), k.name.Location)
		b = binary.AppendVarint(b, int64(k.last))
		b = binary.AppendUvarint(b, uint64(len(k.transactions)))
		for i := range k.transactions {
			t := &k.transactions[i]
			b = appendClaim(appendString(b, t.id), t.top, t.offset)
			older := 0
			if t.older != nil {
				older = len(t.older.claims)
			}
			b = binary.AppendUvarint(b, uint64(older))
			for j := range older {
				b = appendClaim(b, t.older.claims[j], t.older.offset[j])
			}
		}
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendClaim(b []byte, c claim, at ledger.Offset) []byte {
	b = append(b, byte(c.payload.State)<<4|byte(c.payload.Kind))
	b = binary.AppendUvarint(b, uint64(c.revision))
	if c.payload.State == ledger.Active {
		b = binary.AppendUvarint(b, uint64(c.payload.Quantity))
		b = binary.AppendUvarint(b, uint64(c.payload.Day))
	}
	return binary.AppendUvarint(b, uint64(at))
}

// Restore returns the oracle that wrote b, for the same configuration. ErrState for anything else; it never panics.
func Restore(cfg Config, b []byte) (*Oracle, error) {
	o := New(cfg)
	r := &stateReader{b: b}
	o.counts.Records, o.counts.Rejected = r.varint(), r.varint()
	for i := range o.counts.ByCode {
		o.counts.ByCode[i] = r.varint()
	}
	for i := range o.counts.ByClass {
		o.counts.ByClass[i] = r.varint()
	}
	for range r.length(3) {
		if err := o.restoreKey(r); err != nil {
			return nil, err
		}
	}
	if r.failed || len(r.b) > 0 {
		return nil, fmt.Errorf("%w: its length is not that of its contents", ErrState)
	}
	return o, nil
}

func (o *Oracle) restoreKey(r *stateReader) error {
	name := ledger.StockKey{Item: r.text(), Location: r.text()}
	where, ok := o.place(name)
	if _, twice := o.keys[name]; r.failed || !ok || twice {
		return fmt.Errorf("%w: a key that is not of this configuration, or twice", ErrState)
	}
	k := &key{placed: where, name: name, last: ledger.Offset(r.varint())}
	n := r.length(4)
	k.index = make(map[string]int32, n)
	k.transactions = make([]transaction, 0, n)
	for range n {
		t := transaction{id: r.text()}
		t.top, t.offset = r.claim(o.origin)
		for range r.length(3) {
			c, at := r.claim(o.origin)
			t.contested = t.contested || c.revision == t.top.revision
			t.shelve(c, at)
		}
		if _, twice := k.index[t.id]; r.failed || twice {
			return fmt.Errorf("%w: a transaction that is cut off, not of this configuration, or twice", ErrState)
		}
		k.add(t)
	}
	o.keys[name] = k
	o.spelled[string(canonicalKey(name))] = k
	return nil
}

// add takes a whole transaction that is new to k.
func (k *key) add(t transaction) {
	i := int32(len(k.transactions))
	k.index[t.id] = i
	k.transactions = append(k.transactions, t)
	if p, counts := t.active(); counts {
		k.apply(p, 1)
	}
	if t.contested {
		if k.contested == nil {
			k.contested = make(map[int32]struct{})
		}
		k.contested[i] = struct{}{}
	}
}

// stateReader reads what AppendState wrote; failed once it did not fit.
type stateReader struct {
	b      []byte
	failed bool
}

func (r *stateReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.failed, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *stateReader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.failed, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// length reads a number of things that take at least size bytes each, so that no more is allocated than was written.
func (r *stateReader) length(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.b)/size) {
		r.failed, r.b = true, nil
		return 0
	}
	return int(n)
}

func (r *stateReader) text() string {
	n := r.length(1)
	if n == 0 || n > ledger.MaxIdentifierBytes {
		r.failed, r.b = true, nil
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// claim reads one claim and its offset; one that no valid record can make fails.
func (r *stateReader) claim(origin ledger.Day) (c claim, at ledger.Offset) {
	if len(r.b) == 0 {
		r.failed = true
		return c, 0
	}
	head := r.b[0]
	r.b = r.b[1:]
	c.payload.State, c.payload.Kind = ledger.State(head>>4), ledger.Kind(head&15)
	c.revision = ledger.Revision(r.uvarint())
	active := c.payload.State == ledger.Active
	kinds := []ledger.Kind{ledger.Receipt, ledger.Issue, ledger.OpeningCount, ledger.ClosingCount}
	if active {
		c.payload.Quantity, c.payload.Day = ledger.Quantity(r.uvarint()), ledger.Day(r.uvarint())
		r.failed = r.failed || !slices.Contains(kinds, c.payload.Kind) || c.payload.Quantity < 0 || c.payload.Day < origin || c.payload.Day-origin >= ledger.HorizonDays
	} else {
		r.failed = r.failed || c.payload != ledger.Payload{State: ledger.Cancelled}
	}
	at = ledger.Offset(r.uvarint())
	r.failed = r.failed || c.revision < 1 || at < 0
	return c, at
}

// Named returns the stock key that a raw broker key spells, and false where it spells none. A record with that broker key
// can change no other key's state (S3).
func (o *Oracle) Named(rawKey []byte) (ledger.StockKey, bool) {
	if k, ok := o.spelled[string(rawKey)]; ok {
		return k.name, true
	}
	item, location, ok := decodeKey(rawKey)
	return ledger.StockKey{Item: string(item), Location: string(location)}, ok
}
