package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"amends/internal/invariant"
	"amends/internal/ledger"
)

var (
	// ErrFormat is returned for a body whose format this binary does not know. The caller stops (exit 13).
	ErrFormat = errors.New("unknown journal format")
	// ErrChecksum is returned for a body that is damaged: its checksum is wrong, or what it holds cannot be a body.
	// The caller stops for an operator and uses nothing of it (exit 11).
	ErrChecksum = errors.New("journal row is damaged")
)

const (
	format      = 1
	sumBytes    = 4
	farStep     = 31 // the first day step that does not fit the header
	presentBit  = 1 << 2
	stepShift   = 3
	kindMask    = 3
	maxReasons  = ledger.MaxReasons + 1
	leastChange = 2 // bytes: header and version
)

// castagnoli never changes after it is made.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC32C of b.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// AppendBody appends the body of a decision's changes, which must be in the order of S8: by day, a balance before
// an alert, the status last. A decision without changes has a body too, of 5 bytes.
func AppendBody(dst []byte, changes []ledger.Change) []byte {
	start := len(dst)
	dst = append(dst, format)
	var c place
	for i := range changes {
		dst = c.append(dst, &changes[i])
	}
	return binary.BigEndian.AppendUint32(dst, Checksum(dst[start:]))
}

// DecodeBody returns the changes of a body. It fails with ErrFormat or ErrChecksum, wrapped.
func DecodeBody(body []byte) ([]ledger.Change, error) {
	changes, err := AppendChanges(nil, body)
	if err != nil {
		return nil, err
	}
	return changes, nil
}

// AppendChanges appends the changes of a body to dst; it fails as DecodeBody does and then returns dst as it was.
func AppendChanges(dst []ledger.Change, body []byte) ([]ledger.Change, error) {
	if len(body) == 0 {
		return dst, fmt.Errorf("%w: empty body", ErrChecksum)
	}
	if body[0] != format {
		return dst, fmt.Errorf("%w: %d", ErrFormat, body[0])
	}
	end := len(body) - sumBytes
	if end < 1 || Checksum(body[:end]) != binary.BigEndian.Uint32(body[end:]) {
		return dst, fmt.Errorf("%w: checksum of %d bytes", ErrChecksum, len(body))
	}
	r := NewReader(body[1:end])
	if dst == nil && r.Len() > 0 {
		dst = make([]ledger.Change, 0, min(r.Len()/leastChange+1, ledger.MaxRepair))
	}
	start := len(dst)
	var c place
	for r.Len() > 0 {
		dst = append(dst, ledger.Change{})
		c.read(&r, &dst[len(dst)-1])
	}
	if r.Failed() {
		return dst[:start], fmt.Errorf("%w: %d bytes are no list of changes", ErrChecksum, len(body))
	}
	return dst, nil
}

// place is where a list of changes has come to: what the next change is packed relative to.
type place struct {
	last    int64 // the close of the latest balance or alert
	balance int64 // the close of the latest balance
	before  int64 // the close of the latest balance of an earlier day
	day     ledger.Day
	kind    ledger.OutputKind
}

// enter moves to a change's day and kind.
func (c *place) enter(day ledger.Day, kind ledger.OutputKind) {
	if day != c.day {
		c.before = c.balance
	}
	c.day, c.kind = day, kind
}

// note remembers the close of a present balance or alert.
func (c *place) note(kind ledger.OutputKind, closed int64) {
	c.last = closed
	if kind == ledger.Balance {
		c.balance = closed
	}
}

func (c *place) append(dst []byte, ch *ledger.Change) []byte {
	head := byte(ch.Kind)
	if ch.Present {
		head |= presentBit
	}
	step := uint64(0)
	if ch.Kind != ledger.TrustStatus {
		invariant.That(ch.Day > c.day || ch.Day == c.day && ch.Kind > c.kind, "changes are in the order of S8")
		step = uint64(ch.Day - c.day)
		c.enter(ch.Day, ch.Kind)
	}
	if step < farStep {
		dst = append(dst, head|byte(step)<<stepShift)
	} else {
		dst = append(dst, head|farStep<<stepShift)
		dst = binary.AppendUvarint(dst, step-farStep)
	}
	dst = binary.AppendUvarint(dst, uint64(ch.Version))
	switch {
	case !ch.Present:
		return dst
	case ch.Kind == ledger.TrustStatus:
		return appendStatus(dst, ch.Status)
	}
	dst = binary.AppendVarint(dst, ch.Close-c.last)
	if ch.Kind == ledger.Alert {
		dst = binary.AppendVarint(dst, ch.Previous-c.before)
	}
	c.note(ch.Kind, ch.Close)
	return dst
}

func (c *place) read(r *Reader, ch *ledger.Change) {
	head := r.Byte()
	ch.Kind, ch.Present = ledger.OutputKind(head&kindMask), head&presentBit != 0
	step := uint64(head >> stepShift)
	if step == farStep {
		step += r.Uvarint()
	}
	if ch.Version = ledger.Version(r.Counter()); ch.Version == 0 || step > uint64(ledger.MaxDay) || c.kind == ledger.TrustStatus {
		r.Fail()
		return
	}
	switch ch.Kind {
	case ledger.Balance, ledger.Alert:
		c.readDay(r, ch, ledger.Day(step))
	case ledger.TrustStatus:
		c.kind = ch.Kind
		if step != 0 || !ch.Present {
			r.Fail()
			return
		}
		ch.Status = readStatus(r)
	default:
		r.Fail()
	}
}

func (c *place) readDay(r *Reader, ch *ledger.Change, step ledger.Day) {
	if ch.Day = c.day + step; ch.Day > ledger.MaxDay || step == 0 && ch.Kind <= c.kind || ch.Day == 0 {
		r.Fail()
		return
	}
	c.enter(ch.Day, ch.Kind)
	if !ch.Present {
		return
	}
	ch.Close = r.Varint() + c.last
	if ch.Kind == ledger.Alert {
		ch.Previous = r.Varint() + c.before
	}
	c.note(ch.Kind, ch.Close)
}

func appendStatus(dst []byte, s *ledger.Status) []byte {
	n := uint64(len(s.Reasons)) << 1
	if s.Blocked {
		n |= 1
	}
	dst = binary.AppendUvarint(dst, n)
	for _, reason := range s.Reasons {
		dst = append(dst, byte(reason.Code))
		if reason.Code == ledger.Ambiguous {
			dst = binary.AppendUvarint(dst, uint64(len(reason.TxnID)))
			dst = append(dst, reason.TxnID...)
			dst = binary.AppendUvarint(dst, uint64(reason.Revision))
		} else {
			dst = binary.AppendUvarint(dst, uint64(reason.Day))
		}
	}
	if s.Blocked {
		dst = binary.AppendUvarint(dst, uint64(s.More))
	}
	return dst
}

// readStatus reads a status payload; a blocked one has reasons and a ready one none.
func readStatus(r *Reader) *ledger.Status {
	n := r.Uvarint()
	s := &ledger.Status{Blocked: n&1 != 0}
	if n >>= 1; n > maxReasons || s.Blocked != (n > 0) {
		r.Fail()
		return s
	}
	if !s.Blocked {
		return s
	}
	s.Reasons = make([]ledger.Reason, n)
	for i := range s.Reasons {
		s.Reasons[i] = readReason(r)
	}
	s.More = r.Counter()
	return s
}

func readReason(r *Reader) ledger.Reason {
	reason := ledger.Reason{Code: ledger.ReasonCode(r.Byte())}
	switch reason.Code {
	case ledger.Ambiguous:
		reason.TxnID = string(r.Bytes(r.Uvarint()))
		reason.Revision = ledger.Revision(r.Counter())
		if !ledger.ValidIdentifier(reason.TxnID) || reason.Revision == 0 {
			r.Fail()
		}
	case ledger.CountsDisagree, ledger.Unrepresentable:
		day := r.Counter()
		if day < int64(ledger.MinDay) || day > int64(ledger.MaxDay) {
			r.Fail()
			return reason
		}
		reason.Day = ledger.Day(day)
	default:
		r.Fail()
	}
	return reason
}

// AppendStatus appends a status payload as a body holds it, for snapshots.
func AppendStatus(dst []byte, s *ledger.Status) []byte { return appendStatus(dst, s) }

// ReadStatus reads what AppendStatus wrote; the reader tells of a failure.
func ReadStatus(r *Reader) *ledger.Status { return readStatus(r) }
