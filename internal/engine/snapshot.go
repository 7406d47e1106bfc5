package engine

import (
	"encoding/binary"
	"fmt"

	"amends/internal/fold"
	"amends/internal/journal"
	"amends/internal/ledger"
)

// Snapshot is the encoded state of one key: an accelerator for Restore, never an authority (design, storage). Rows is
// the number of the key's decisions that it stands for.
type Snapshot struct {
	State []byte
	KeyID ledger.KeyID
	Rows  int64
}

// Format 1 of a snapshot, numbers as in package journal:
//
//	snapshot = 0x01 key_id rows status_version status days transactions past crc
//	days     = count (step present|alerted<<1 balance_version alert_version [close difference, where present])*
//	transactions = count (length txn_id revision payload)*         each with what it holds itself, authority.All
//	past     = count (number of the transaction, revision payload)* authority.Past
//	payload  = state|kind<<2 [day from the ledger origin, quantity, where active]
const (
	snapshotFormat   = 1
	snapshotsAtOnce  = 4 << 20 // bytes that one call of Snapshots encodes before it leaves the rest to the next
	checksumBytes    = 4
	kindShift        = 2
	presentFlag      = 1
	alertedFlag      = 2
	leastPackedBytes = 3 // of a day, a transaction or past evidence
)

// Snapshots returns the states of keys decided since the last call whose decisions since their latest snapshot are at
// least least and outnumber those that it stands for, so that loading a key reads at most about twice what it must.
// The caller stores them as of the frontier of the last batch, which must be committed. Where there are many, some are
// left to the next call.
func (s *States) Snapshots(least int64) []Snapshot {
	var due []Snapshot
	size := 0
	for len(s.changed) > 0 && size < snapshotsAtOnce {
		k := s.changed[len(s.changed)-1]
		s.changed = s.changed[:len(s.changed)-1]
		k.changed = false
		if since := k.rows - k.held; k.txns == nil || since < least || since <= k.held {
			continue
		}
		state := k.encode()
		due = append(due, Snapshot{State: state, KeyID: k.id, Rows: k.rows})
		k.held = k.rows
		size += len(state)
	}
	return due
}

// encode returns the snapshot of a known key.
func (k *state) encode() []byte {
	b := []byte{snapshotFormat}
	b = binary.AppendUvarint(b, uint64(k.id))
	b = binary.AppendUvarint(b, uint64(k.rows))
	b = binary.AppendUvarint(b, uint64(k.version))
	b = journal.AppendStatus(b, k.status)
	b = appendDays(b, k.days)
	b = binary.AppendUvarint(b, uint64(k.txns.Len()))
	origin := k.days.Origin()
	for id, e := range k.txns.All() {
		b = binary.AppendUvarint(b, uint64(len(id)))
		b = append(b, id...)
		b = binary.AppendUvarint(b, uint64(e.Revision))
		b = appendPayload(b, e.Payload, origin)
	}
	b = binary.AppendUvarint(b, uint64(k.txns.PastLen()))
	for i, e := range k.txns.Past() {
		b = binary.AppendUvarint(b, uint64(i))
		b = binary.AppendUvarint(b, uint64(e.Revision))
		b = appendPayload(b, e.Payload, origin)
	}
	return binary.BigEndian.AppendUint32(b, journal.Checksum(b))
}

func appendDays(b []byte, days *fold.Days) []byte {
	n := 0
	for range days.All() {
		n++
	}
	b = binary.AppendUvarint(b, uint64(n))
	at, last := days.Origin(), int64(0)
	for day, p := range days.All() {
		flags := byte(0)
		if p.Present {
			flags |= presentFlag
		}
		if p.Alerted {
			flags |= alertedFlag
		}
		b = binary.AppendUvarint(b, uint64(day-at))
		b = append(b, flags)
		b = binary.AppendUvarint(b, uint64(p.Balance))
		b = binary.AppendUvarint(b, uint64(p.Alert))
		if p.Present {
			b = binary.AppendVarint(b, p.Close-last)
			last = p.Close
		}
		at = day
	}
	return b
}

func appendPayload(b []byte, p ledger.Payload, origin ledger.Day) []byte {
	b = append(b, byte(p.State)|byte(p.Kind)<<kindShift)
	if p.State != ledger.Active {
		return b
	}
	b = binary.AppendUvarint(b, uint64(p.Day-origin))
	return binary.AppendUvarint(b, uint64(p.Quantity))
}

// decode fills an empty state from a snapshot of its key. It fails with ErrSnapshot. That the evidence derives what
// was published is checked later, with the decisions after the snapshot.
func (k *state) decode(b []byte, origin ledger.Day) error {
	end := len(b) - checksumBytes
	if end < 1 || journal.Checksum(b[:end]) != binary.BigEndian.Uint32(b[end:]) {
		return fmt.Errorf("%w: checksum of %d bytes", ErrSnapshot, len(b))
	}
	if b[0] != snapshotFormat {
		return fmt.Errorf("%w: format %d", ErrSnapshot, b[0])
	}
	r := journal.NewReader(b[1:end])
	if id := ledger.KeyID(r.Counter()); id != k.id {
		return fmt.Errorf("%w: of key %d, not %d", ErrSnapshot, id, k.id)
	}
	k.rows = r.Counter()
	k.held = k.rows
	k.version = ledger.Version(r.Counter())
	k.status = journal.ReadStatus(&r)
	readDays(&r, k.days, origin)
	k.readEvidence(&r, origin)
	if r.Failed() || r.Len() > 0 || k.version == 0 || k.rows == 0 {
		return fmt.Errorf("%w: %d bytes are no state", ErrSnapshot, len(b))
	}
	for p := range k.txns.Contributions() {
		k.days.Add(p)
	}
	return nil
}

func readDays(r *journal.Reader, days *fold.Days, origin ledger.Day) {
	at, last := origin, int64(0)
	for i, n := 0, count(r); i < n; i++ {
		step, flags := r.Counter(), r.Byte()
		p := fold.Published{Balance: ledger.Version(r.Counter()), Alert: ledger.Version(r.Counter()),
			Present: flags&presentFlag != 0, Alerted: flags&alertedFlag != 0}
		if p.Present {
			p.Close = last + r.Varint()
			last = p.Close
		}
		if r.Failed() || step >= ledger.HorizonDays || i > 0 && step == 0 || !withinHorizon(at+ledger.Day(step), origin) || flags > presentFlag|alertedFlag ||
			p.Balance == 0 || p.Alerted && p.Alert == 0 {
			r.Fail()
			return
		}
		at += ledger.Day(step)
		days.Publish(at, p)
	}
}

func (k *state) readEvidence(r *journal.Reader, origin ledger.Day) {
	n := count(r)
	for range n {
		id := string(r.Bytes(r.Uvarint()))
		k.readRecord(r, id, origin)
	}
	if k.txns.Len() != n {
		r.Fail()
		return
	}
	for range count(r) {
		i := r.Uvarint()
		if i >= uint64(n) {
			r.Fail()
			return
		}
		k.readRecord(r, k.txns.ID(int(i)), origin)
	}
}

// readRecord reads one recorded (revision, payload), which nothing before it may have recorded.
func (k *state) readRecord(r *journal.Reader, id string, origin ledger.Day) {
	revision := ledger.Revision(r.Counter())
	what := r.Byte()
	p := ledger.Payload{State: ledger.State(what & (1<<kindShift - 1)), Kind: ledger.Kind(what >> kindShift)}
	if p.State == ledger.Active {
		day := r.Counter()
		if day >= ledger.HorizonDays {
			r.Fail()
			return
		}
		p.Day = origin + ledger.Day(day)
		p.Quantity = ledger.Quantity(r.Counter())
	}
	if r.Failed() || !ledger.ValidIdentifier(id) || revision < 1 || !validPayload(p, origin) {
		r.Fail()
		return
	}
	if k.txns.Record(id, revision, p).Class == ledger.Duplicate {
		r.Fail()
	}
}

// count reads how many things follow; more than the bytes can hold is a failure.
func count(r *journal.Reader) int {
	n := r.Uvarint()
	if n > uint64(r.Len()/leastPackedBytes) {
		r.Fail()
		return 0
	}
	return int(n)
}
