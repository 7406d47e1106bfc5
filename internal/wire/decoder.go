package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"

	"amends/internal/ledger"
	"amends/internal/manifest"
)

// Decoded is a source record after S3: its Assertion, or the Rejection with the Evidence that quarantine keeps. Exactly
// one of the two is there. Digest identifies the raw bytes in both cases.
type Decoded struct {
	Record    ledger.SourceRecord
	Evidence  *ledger.Evidence
	Assertion ledger.Assertion
	Digest    ledger.RecordDigest
	Rejection ledger.Rejection
}

// A decoder that remembers as much as it may of broker keys starts afresh. Whoever decodes all partitions has a decoder for each.
const (
	maxCachedBytes = 16 << 20
	allCachedBytes = 256 << 20
)

// Decoder decodes the source records of one namespace (S3). It remembers the broker keys it has seen, so that a record
// costs no parsing of its key and shares the strings of its stock key. It is for one goroutine.
type Decoder struct {
	cfg    *manifest.Config
	keys   map[string]*brokerKey
	parser valueParser
	cached int // bytes
	limit  int
}

// brokerKey is what the bytes of one valid broker key stand for.
type brokerKey struct {
	key       ledger.StockKey
	partition ledger.Partition
	admitted  bool
}

// NewDecoder returns a decoder for the records of the namespace with that configuration.
func NewDecoder(cfg *manifest.Config) *Decoder {
	return &Decoder{cfg: cfg, keys: map[string]*brokerKey{}, limit: min(maxCachedBytes, allCachedBytes/max(int(cfg.Partitions), 1))}
}

// Decode applies S3 to rec in the order of its table. The result shares no memory with rec but Record itself.
func (d *Decoder) Decode(rec ledger.SourceRecord) Decoded {
	out := Decoded{Record: rec, Digest: Digest(rec.Key, rec.Value)}
	out.Rejection = d.decide(&rec, &out.Assertion)
	if out.Rejection != 0 {
		out.Evidence = evidenceOf(&rec, out.Rejection)
	}
	return out
}

// decide returns the first rejection that applies, or fills in a and returns 0.
func (d *Decoder) decide(rec *ledger.SourceRecord, a *ledger.Assertion) ledger.Rejection {
	if len(rec.Value) > ledger.MaxValueBytes || len(rec.Key) > ledger.MaxKeyBytes {
		return ledger.TooLarge
	}
	p := &d.parser
	if code := p.parse(rec.Value); code != 0 {
		return code
	}
	if p.payload.State == ledger.Active {
		after := int64(p.payload.Day) - int64(d.cfg.LedgerOrigin)
		if after < 0 || after >= ledger.HorizonDays {
			return ledger.OutOfHorizon
		}
	}
	k := d.lookup(rec.Key)
	if k == nil || k.key.Item != string(p.item) || k.key.Location != string(p.location) {
		if _, ok := d.cfg.Terms(ledger.StockKey{Item: string(p.item), Location: string(p.location)}); !ok {
			return ledger.UnknownKey
		}
		return ledger.KeyMismatch
	}
	switch {
	case !k.admitted:
		return ledger.UnknownKey
	case k.partition != rec.Partition:
		return ledger.Routing
	}
	*a = ledger.Assertion{Key: k.key, TxnID: string(p.txnID), Revision: p.revision, Payload: p.payload}
	return 0
}

// lookup returns what a broker key stands for, nil if it is no key encoding.
func (d *Decoder) lookup(raw []byte) *brokerKey {
	if k, ok := d.keys[string(raw)]; ok {
		return k
	}
	key, ok := ParseKey(raw)
	if !ok {
		return nil
	}
	k := &brokerKey{key: key}
	k.partition, k.admitted = d.cfg.Route(key)
	const overhead = 128
	size := len(raw) + len(key.Item) + len(key.Location) + overhead
	if d.cached+size > d.limit {
		clear(d.keys)
		d.cached = 0
	}
	d.keys[string(raw)] = k
	d.cached += size
	return k
}

// Digest returns the record digest of a raw key and value, nil being an absent one (ledger.RecordDigest).
func Digest(key, value []byte) ledger.RecordDigest {
	var b [1024]byte
	if len(key)+len(value)+16 <= len(b) {
		framed := appendFramed(appendFramed(b[:0], key), value)
		sum := sha256.Sum256(framed)
		return ledger.RecordDigest(sum[:16])
	}
	h := sha256.New()
	h.Write(appendLength(b[:0], key))
	h.Write(key)
	h.Write(appendLength(b[:0], value))
	h.Write(value)
	return ledger.RecordDigest(h.Sum(b[:0])[:16])
}

func appendFramed(dst, b []byte) []byte { return append(appendLength(dst, b), b...) }

func appendLength(dst, b []byte) []byte {
	n := uint64(len(b))
	if b == nil {
		n = math.MaxUint64
	}
	return binary.BigEndian.AppendUint64(dst, n)
}

// evidenceOf copies what quarantine keeps of rec (S3).
func evidenceOf(rec *ledger.SourceRecord, code ledger.Rejection) *ledger.Evidence {
	e := &ledger.Evidence{
		Key:         rec.Key,
		Value:       rec.Value,
		KeyLength:   int64(len(rec.Key)),
		ValueLength: int64(len(rec.Value)),
		KeySHA:      sha256.Sum256(rec.Key),
		ValueSHA:    sha256.Sum256(rec.Value),
	}
	if code == ledger.TooLarge {
		e.Key = e.Key[:min(len(e.Key), ledger.MaxKeyBytes)]
		e.Value = e.Value[:min(len(e.Value), ledger.MaxValueBytes)]
	}
	e.Key, e.Value = bytes.Clone(e.Key), bytes.Clone(e.Value)
	return e
}
