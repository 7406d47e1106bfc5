package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"amends/internal/ledger"
)

// Envelope is one published output version (S8). Close belongs to balances and alerts, Previous and Threshold to alerts,
// Status (never nil then) to statuses; all are zero when not Present. Index and Count number the outputs of its decision.
type Envelope struct {
	Status    *ledger.Status
	Namespace string
	Output    ledger.OutputID
	Cause     Cause
	Sequence  ledger.Sequence
	Version   ledger.Version
	Close     int64
	Previous  int64
	Threshold int64
	Index     int
	Count     int
	Present   bool
}

// Cause is the source record whose decision produced an output version (S1).
type Cause struct {
	TxnID     string
	Offset    ledger.Offset
	Revision  ledger.Revision
	Partition ledger.Partition
}

// AppendEnvelope appends the exact bytes of e, which must be valid (S8). Where the envelopes of whole decisions are
// written, an Encoder gives the same bytes with less work.
func AppendEnvelope(dst []byte, e *Envelope) []byte {
	var head, key, cause [128]byte
	p := pieces{
		head:  appendHead(head[:0], e.Namespace),
		key:   appendMembers(key[:0], e.Output.Key),
		cause: appendCause(cause[:0], e.Cause),
	}
	return p.append(dst, e)
}

// EnvelopeDigest returns the digest that view rows keep of an envelope's bytes: the first 8 bytes of their SHA-256, big endian.
func EnvelopeDigest(envelope []byte) int64 {
	sum := sha256.Sum256(envelope)
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// pieces are the parts of envelopes that many have in common.
type pieces struct {
	head  []byte // up to the sequence
	key   []byte // item and location of the output id
	cause []byte // from the payload's end to the repair's index
}

// append puts the bytes of e together; the strings of e are taken from the pieces.
func (p *pieces) append(dst []byte, e *Envelope) []byte {
	dst = append(dst, p.head...)
	dst = strconv.AppendInt(dst, int64(e.Sequence), 10)
	dst = append(dst, `,"output":["`...)
	dst = append(dst, e.Output.Kind.String()...)
	dst = append(dst, `",`...)
	dst = append(dst, p.key...)
	if e.Output.Kind != ledger.TrustStatus {
		dst = append(dst, `,"`...)
		dst = e.Output.Day.AppendTo(dst)
		dst = append(dst, '"')
	}
	dst = append(dst, `],"version":`...)
	dst = strconv.AppendInt(dst, int64(e.Version), 10)
	if e.Present {
		dst = append(dst, `,"present":true,"payload":`...)
		dst = AppendPayload(dst, e)
	} else {
		dst = append(dst, `,"present":false,"payload":null`...)
	}
	dst = append(dst, p.cause...)
	dst = strconv.AppendInt(dst, int64(e.Index), 10)
	dst = append(dst, `,"count":`...)
	dst = strconv.AppendInt(dst, int64(e.Count), 10)
	return append(dst, "}}"...)
}

func appendHead(dst []byte, namespace string) []byte {
	dst = append(dst, `{"schema":1,"namespace":`...)
	dst = AppendString(dst, namespace)
	return append(dst, `,"sequence":`...)
}

func appendMembers(dst []byte, k ledger.StockKey) []byte {
	dst = AppendString(dst, k.Item)
	dst = append(dst, ',')
	return AppendString(dst, k.Location)
}

func appendCause(dst []byte, c Cause) []byte {
	dst = append(dst, `,"cause":{"partition":`...)
	dst = strconv.AppendInt(dst, int64(c.Partition), 10)
	dst = append(dst, `,"offset":`...)
	dst = strconv.AppendInt(dst, int64(c.Offset), 10)
	dst = append(dst, `,"txn_id":`...)
	dst = AppendString(dst, c.TxnID)
	dst = append(dst, `,"revision":`...)
	dst = strconv.AppendInt(dst, int64(c.Revision), 10)
	return append(dst, `},"repair":{"index":`...)
}

// AppendPayload appends the payload of e alone, which is present (S8): its kind, status and numbers are all that is read.
func AppendPayload(dst []byte, e *Envelope) []byte {
	switch e.Output.Kind {
	case ledger.TrustStatus:
		return AppendStatus(dst, e.Status)
	case ledger.Alert:
		dst = append(dst, `{"previous":`...)
		dst = strconv.AppendInt(dst, e.Previous, 10)
		dst = append(dst, `,"close":`...)
		dst = strconv.AppendInt(dst, e.Close, 10)
		dst = append(dst, `,"threshold":`...)
		dst = strconv.AppendInt(dst, e.Threshold, 10)
	default:
		dst = append(dst, `{"close":`...)
		dst = strconv.AppendInt(dst, e.Close, 10)
	}
	return append(dst, '}')
}

// AppendStatus appends the payload of a status (S8).
func AppendStatus(dst []byte, s *ledger.Status) []byte {
	if !s.Blocked {
		return append(dst, `{"status":"READY","reasons":[],"more":0}`...)
	}
	dst = append(dst, `{"status":"BLOCKED","reasons":[`...)
	for i, r := range s.Reasons {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"code":"`...)
		dst = append(dst, r.Code.String()...)
		if r.Code == ledger.Ambiguous {
			dst = append(dst, `","txn_id":`...)
			dst = AppendString(dst, r.TxnID)
			dst = append(dst, `,"revision":`...)
			dst = strconv.AppendInt(dst, int64(r.Revision), 10)
			dst = append(dst, '}')
			continue
		}
		dst = append(dst, `","day":"`...)
		dst = r.Day.AppendTo(dst)
		dst = append(dst, `"}`...)
	}
	dst = append(dst, `],"more":`...)
	dst = strconv.AppendInt(dst, s.More, 10)
	return append(dst, '}')
}
