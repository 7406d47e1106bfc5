package stored

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/oracle"
	"amends/internal/store"
	"amends/internal/wire"
)

// Digester gives the digests of the envelopes of one partition's decisions.
type Digester struct {
	config  *manifest.Config
	encoder *wire.Encoder
	buf     []byte
}

// NewDigester returns the digester of a partition.
func NewDigester(cfg *manifest.Config, p ledger.Partition) Digester {
	return Digester{config: cfg, encoder: wire.NewEncoder(cfg, p)}
}

// Encode returns the digest of the i-th envelope of d, and false for an alert that has no envelope.
func (g *Digester) Encode(d *ledger.Decision, i int) (int64, bool) {
	if c := &d.Changes[i]; c.Kind == ledger.Alert && c.Present {
		if t, _ := g.config.Terms(d.Assertion.Key); t.Threshold == nil {
			return 0, false
		}
	}
	g.buf = g.encoder.Append(g.buf[:0], d, i)
	return wire.EnvelopeDigest(g.buf), true
}

// JournalFault says how a journal row is not what its source record says, "" when it is.
func JournalFault(d *ledger.Decision, r *ledger.SourceRecord, v oracle.Verdict) string {
	switch {
	case d.Digest != wire.Digest(r.Key, r.Value):
		return "its digest is not that of the source record"
	case d.Rejection != v.Rejection:
		return fmt.Sprintf("its rejection is %q, the source record gives %q", d.Rejection, v.Rejection)
	case d.Rejection != 0:
		return evidenceFault(d.Evidence, d.Rejection, r)
	case d.Class != v.Class:
		return fmt.Sprintf("its class is %v, the source record gives %v", d.Class, v.Class)
	case d.Assertion != v.Assertion:
		return "its columns are not what the source record says"
	}
	return ""
}

// evidenceFault says how a quarantine row is not what its source record gives (S3), "" when it is.
func evidenceFault(e *ledger.Evidence, code ledger.Rejection, r *ledger.SourceRecord) string {
	key, value := r.Key, r.Value
	if code == ledger.TooLarge {
		key, value = key[:min(len(key), ledger.MaxKeyBytes)], value[:min(len(value), ledger.MaxValueBytes)]
	}
	switch {
	case e == nil:
		return "its quarantine row is missing"
	case !same(e.Key, key) || !same(e.Value, value):
		return "its quarantined bytes are not those of the source record"
	case e.KeyLength != int64(len(r.Key)) || e.ValueLength != int64(len(r.Value)):
		return "its quarantined lengths are not those of the source record"
	case e.KeySHA != sha256.Sum256(r.Key) || e.ValueSHA != sha256.Sum256(r.Value):
		return "its quarantined sums are not those of the source record"
	}
	return ""
}

// same compares bytes, absent and empty being different.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// Damaged reports whether stored bytes are not what any row holds. The schema is this binary's, or nothing would have been
// read: a row of a format that it does not know is damaged too.
func Damaged(err error) bool {
	return errors.Is(err, store.ErrIntegrity) || errors.Is(err, store.ErrSchema)
}

// Decided is what the journal says of an output last: its version and the digest of its envelope.
type Decided struct {
	Version ledger.Version
	Digest  int64
}

// Fault says how a row is not what the journal decided last, "" when it is.
func (d Decided) Fault(row *store.ViewRow) string {
	switch {
	case row == nil:
		return fmt.Sprintf("the journal decided version %d of it, the view holds no row", d.Version)
	case row.Version != d.Version:
		return fmt.Sprintf("the journal decided version %d of it, the view holds version %d", d.Version, row.Version)
	case row.Digest != d.Digest:
		return fmt.Sprintf("the journal's envelope of version %d has digest %016x, the view's row %016x", d.Version, uint64(d.Digest), uint64(row.Digest))
	}
	return ""
}
