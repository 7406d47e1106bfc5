package delivery

import (
	"context"
	"fmt"
	"strconv"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/wire"
)

// page is consecutive outputs ready to send. Its memory is used again for a later page.
type page struct {
	messages []broker.Message
	bytes    []byte
	headers  []broker.Header
	first    ledger.Sequence
	full     bool // a limit ended it: more is probably pending
}

// share returns the part of all that the page of one of so many partitions may have, at most one.
func share(one, all int, partitions int32) int { return min(one, all/max(int(partitions), 1)) }

// headersEach is how many hints a message carries: sequence, term, and CloudEvents' specversion, id, source and type.
const headersEach = 6

// pager encodes pages from the outbox.
type pager struct {
	enc     *wire.Encoder
	cursor  *cursor
	source  []byte // ce_source
	term    []byte
	types   [ledger.TrustStatus + 1][]byte
	outputs int // limits of a page
	size    int
}

func newPager(cfg *manifest.Config, c *cursor, term int64, outputs, size int) *pager {
	g := &pager{enc: wire.NewEncoder(cfg, c.partition), cursor: c, outputs: outputs, size: size,
		source: []byte("amends/" + cfg.Namespace + "/" + strconv.Itoa(int(c.partition))), term: strconv.AppendInt(nil, term, 10)}
	for k := ledger.Balance; k <= ledger.TrustStatus; k++ {
		g.types[k] = []byte("amends." + k.String() + ".v1")
	}
	return g
}

var specVersion = []byte("1.0")

// build fills pg with what is pending, up to the limits; at least one output if there is any.
func (g *pager) build(ctx context.Context, pg *page) error {
	pg.messages, pg.bytes, pg.headers, pg.full = pg.messages[:0], pg.bytes[:0], pg.headers[:0], false
	pg.first = g.cursor.next
	var key []byte
	var held *ledger.Decision
	for {
		d, i, err := g.cursor.peek(ctx)
		if err != nil || d == nil {
			return err
		}
		if len(pg.messages) >= g.outputs || len(pg.bytes) >= g.size {
			pg.full = true
			return nil
		}
		if d != held {
			if err := g.fits(d); err != nil {
				return err
			}
			held = d
			pg.bytes, key = cut(pg.bytes, func(b []byte) []byte { return g.enc.Key(b, d) })
		}
		var value, sequence []byte
		pg.bytes, value = cut(pg.bytes, func(b []byte) []byte { return g.enc.Append(b, d, i) })
		pg.bytes, sequence = cut(pg.bytes, func(b []byte) []byte { return strconv.AppendInt(b, int64(g.cursor.next), 10) })
		n := len(pg.headers)
		pg.headers = append(pg.headers,
			broker.Header{Key: "sequence", Value: sequence}, broker.Header{Key: "term", Value: g.term},
			broker.Header{Key: "ce_specversion", Value: specVersion}, broker.Header{Key: "ce_id", Value: sequence},
			broker.Header{Key: "ce_source", Value: g.source}, broker.Header{Key: "ce_type", Value: g.types[d.Changes[i].Kind]})
		pg.messages = append(pg.messages, broker.Message{Key: key, Value: value, Headers: pg.headers[n : n+headersEach : n+headersEach]})
		g.cursor.advance(d)
	}
}

// cut appends to buf and returns it with the part that was appended. Earlier parts stay valid when buf moves.
func cut(buf []byte, add func([]byte) []byte) (all, part []byte) {
	n := len(buf)
	all = add(buf)
	return all, all[n:len(all):len(all)]
}

// fits returns an error for a decision that cannot be of this configuration, and has no bytes under it.
func (g *pager) fits(d *ledger.Decision) error {
	if g.enc.Fits(d) {
		return nil
	}
	return fmt.Errorf("outbox of partition %d: the decision at %d raises an alert, and key %q %q has no threshold: %w",
		g.cursor.partition, d.Offset, d.Assertion.Key.Item, d.Assertion.Key.Location, store.ErrIntegrity)
}

// expect returns the exact key and value of the i-th output of a decision.
func (g *pager) expect(d *ledger.Decision, i int) (key, value []byte, err error) {
	if err := g.fits(d); err != nil {
		return nil, nil, err
	}
	return g.enc.Key(nil, d), g.enc.Append(nil, d, i), nil
}
