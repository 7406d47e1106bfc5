package wire

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"amends/internal/ledger"
	"amends/internal/manifest"
)

// DecodeEnvelope reads the bytes of one envelope (S8). It accepts exactly what AppendEnvelope writes for a valid
// envelope: AppendEnvelope of the result gives the same bytes. It fails with an error that wraps *Problem and says
// where and why; the result shares no memory with b.
func DecodeEnvelope(b []byte) (Envelope, error) {
	var d EnvelopeDecoder
	return d.Decode(b)
}

// EnvelopeDecoder decodes envelopes one after the other. Those that share namespace, stock key and transaction with the
// one before, as within a repair, share its strings and allocate nothing. The zero value is ready; for one goroutine.
type EnvelopeDecoder struct{ last string }

// Decode is DecodeEnvelope.
func (d *EnvelopeDecoder) Decode(b []byte) (Envelope, error) {
	var e Envelope
	r := envelopeReader{b: b, last: d.last}
	if !utf8.Valid(b) {
		r.fail(invalidAt(b), "not valid UTF-8")
	}
	r.envelope(&e)
	if r.problem == nil && r.pos < len(b) {
		r.fail(r.pos, "data follows the envelope")
	}
	if r.problem != nil {
		return Envelope{}, fmt.Errorf("decode envelope: %w", r.problem)
	}
	d.last = r.last
	return e, nil
}

// envelopeReader reads the canonical encoding from left to right and stops at the first byte that differs from it.
type envelopeReader struct {
	b       []byte
	problem *Problem
	last    string // namespace, item, location and transaction of the envelope before, then of this one
	pos     int
}

func (r *envelopeReader) fail(at int, reason string) {
	if r.problem == nil {
		r.problem = &Problem{Reason: reason, Column: at + 1}
	}
}

func (r *envelopeReader) envelope(e *Envelope) {
	var buffer [192]byte
	strs := buffer[:0]
	r.literal(`{"schema":1,"namespace":`)
	strs = r.text(strs)
	namespace := len(strs)
	r.literal(`,"sequence":`)
	e.Sequence = ledger.Sequence(r.counter("sequence", 0))
	r.literal(`,"output":["`)
	e.Output.Kind = r.kind()
	r.literal(`",`)
	strs = r.identifier(strs, "item")
	item := len(strs)
	r.literal(`,`)
	strs = r.identifier(strs, "location")
	location := len(strs)
	if e.Output.Kind != ledger.TrustStatus {
		r.literal(`,"`)
		e.Output.Day = r.day()
		r.literal(`"`)
	}
	r.literal(`],"version":`)
	e.Version = ledger.Version(r.counter("version", 1))
	if e.Present = r.present(); e.Present {
		r.payload(e)
	}
	r.literal(`,"cause":{"partition":`)
	e.Cause.Partition = ledger.Partition(r.upTo("partition", ledger.MaxPartitions-1))
	r.literal(`,"offset":`)
	e.Cause.Offset = ledger.Offset(r.counter("offset", 0))
	r.literal(`,"txn_id":`)
	strs = r.identifier(strs, "txn_id")
	r.literal(`,"revision":`)
	e.Cause.Revision = ledger.Revision(r.counter("revision", 1))
	r.literal(`},"repair":{"index":`)
	e.Index = int(r.upTo("index", ledger.MaxRepair-1))
	r.literal(`,"count":`)
	at := r.pos
	if e.Count = int(r.upTo("count", ledger.MaxRepair)); e.Count <= e.Index {
		r.fail(at, "count is not above index")
	}
	r.literal(`}}`)
	if r.problem != nil {
		return
	}
	all := r.last
	if string(strs) != all {
		all = string(strs) // one allocation for the four strings
		r.last = all
	}
	e.Namespace = all[:namespace]
	e.Output.Key = ledger.StockKey{Item: all[namespace:item], Location: all[item:location]}
	e.Cause.TxnID = all[location:]
	if !manifest.ValidNamespace(e.Namespace) {
		r.fail(len(`{"schema":1,"namespace":`), "not a namespace")
	}
}

// literal moves over text, which must be next.
func (r *envelopeReader) literal(text string) {
	if r.problem == nil && !r.has(text) {
		r.fail(r.pos, "expected "+text)
	}
}

// has moves over text if it is next.
func (r *envelopeReader) has(text string) bool {
	if r.problem != nil || len(r.b)-r.pos < len(text) || string(r.b[r.pos:r.pos+len(text)]) != text {
		return false
	}
	r.pos += len(text)
	return true
}

func (r *envelopeReader) kind() ledger.OutputKind {
	for k := ledger.Balance; k <= ledger.TrustStatus; k++ {
		if r.has(k.String()) {
			return k
		}
	}
	r.fail(r.pos, "expected balance, alert or status")
	return 0
}

func (r *envelopeReader) present() bool {
	if r.has(`,"present":true,"payload":`) {
		return true
	}
	r.literal(`,"present":false,"payload":null`)
	return false
}

// text appends what the next string stands for; it must have the minimal escapes.
func (r *envelopeReader) text(dst []byte) []byte {
	r.literal(`"`)
	if r.problem != nil {
		return dst
	}
	start := r.pos
	for i := start; i < len(r.b); i++ {
		switch c := r.b[i]; {
		case c == '"':
			r.pos = i + 1
			return append(dst, r.b[start:i]...)
		case c == '\\':
			return r.escapedText(dst, start)
		case c < 0x20:
			r.fail(i, "a control character must be escaped")
			return dst
		}
	}
	r.fail(len(r.b), "a string does not end")
	return dst
}

// escapedText is text for a string that has an escape: it is read by the scanner and compared with its own encoding.
func (r *envelopeReader) escapedText(dst []byte, start int) []byte {
	s := scanner{src: r.b, pos: start - 1}
	t := s.str()
	if s.problem != nil {
		r.fail(s.problem.Column-1, s.problem.Reason)
		return dst
	}
	n := len(dst)
	dst = appendUnescaped(dst, r.b[t.from:t.to])
	if string(AppendString(nil, string(dst[n:]))) != string(r.b[start-1:s.pos]) {
		r.fail(start-1, "a string without the minimal escapes")
	}
	r.pos = s.pos
	return dst
}

func (r *envelopeReader) identifier(dst []byte, member string) []byte {
	at, n := r.pos, len(dst)
	dst = r.text(dst)
	if size := len(dst) - n; size < 1 || size > ledger.MaxIdentifierBytes {
		r.fail(at, member+" is not 1 to 512 bytes")
	}
	return dst
}

func (r *envelopeReader) day() ledger.Day {
	if r.problem != nil {
		return 0
	}
	end := min(r.pos+len("2006-01-02"), len(r.b))
	d, ok := ledger.ParseDay(string(r.b[r.pos:end]))
	if !ok {
		r.fail(r.pos, "not a day")
	}
	r.pos = end
	return d
}

// integer reads an int64 in its canonical form.
func (r *envelopeReader) integer() int64 {
	if r.problem != nil {
		return 0
	}
	start := r.pos
	negative := r.has("-")
	digits := r.pos
	for r.pos < len(r.b) && r.b[r.pos]-'0' <= 9 {
		r.pos++
	}
	text := r.b[digits:r.pos]
	if len(text) == 0 || text[0] == '0' && (len(text) > 1 || negative) {
		r.fail(start, "not a canonical integer")
		return 0
	}
	n, ok := parseUnsigned(text)
	switch {
	case ok && negative && n <= 1<<63:
		return -int64(n) // 2^63 becomes itself, the least int64
	case ok && !negative && n < 1<<63:
		return int64(n)
	}
	r.fail(start, "an integer does not fit 64 bits")
	return 0
}

// counter reads an integer of least..2^63-1.
func (r *envelopeReader) counter(member string, least int64) int64 {
	at := r.pos
	n := r.integer()
	if n < least {
		r.fail(at, member+" is below "+strconv.FormatInt(least, 10))
	}
	return n
}

// upTo reads an integer of 0..most.
func (r *envelopeReader) upTo(member string, most int64) int64 {
	at := r.pos
	n := r.integer()
	if n < 0 || n > most {
		r.fail(at, member+" is not 0 to "+strconv.FormatInt(most, 10))
	}
	return n
}

func (r *envelopeReader) payload(e *Envelope) {
	switch e.Output.Kind {
	case ledger.Balance:
		r.literal(`{"close":`)
		e.Close = r.integer()
		r.literal(`}`)
	case ledger.Alert:
		r.literal(`{"previous":`)
		e.Previous = r.integer()
		r.literal(`,"close":`)
		e.Close = r.integer()
		r.literal(`,"threshold":`)
		e.Threshold = r.integer()
		r.literal(`}`)
	case ledger.TrustStatus:
		e.Status = r.status()
	}
}

func (r *envelopeReader) status() *ledger.Status {
	s := &ledger.Status{}
	if r.has(`{"status":"READY","reasons":[],"more":0}`) {
		return s
	}
	s.Blocked = true
	r.literal(`{"status":"BLOCKED","reasons":[`)
	for first := true; r.problem == nil && !r.has(`]`); first = false {
		if !first {
			r.literal(`,`)
		}
		s.Reasons = append(s.Reasons, r.reason(s.Reasons))
	}
	r.literal(`,"more":`)
	at := r.pos
	s.More = r.counter("more", 0)
	r.literal(`}`)
	switch {
	case len(s.Reasons) == 0:
		r.fail(at, "blocked without a reason")
	case s.More > 0 && (len(s.Reasons) < ledger.MaxReasons || s.Reasons[ledger.MaxReasons-1].Code != ledger.Ambiguous):
		r.fail(at, "more than the reasons named, of which there are fewer than 16")
	}
	return s
}

// reason reads one reason that may stand after those before it.
func (r *envelopeReader) reason(before []ledger.Reason) ledger.Reason {
	var v ledger.Reason
	at := r.pos
	switch {
	case r.has(`{"code":"AMBIGUOUS","txn_id":`):
		v.Code = ledger.Ambiguous
		v.TxnID = string(r.identifier(nil, "txn_id"))
		r.literal(`,"revision":`)
		v.Revision = ledger.Revision(r.counter("revision", 1))
		r.literal(`}`)
	case r.has(`{"code":"COUNTS_DISAGREE","day":"`):
		v.Code = ledger.CountsDisagree
		v.Day = r.day()
		r.literal(`"}`)
	default:
		r.literal(`{"code":"UNREPRESENTABLE","day":"`)
		v.Code = ledger.Unrepresentable
		v.Day = r.day()
		r.literal(`"}`)
	}
	if len(before) == 0 {
		return v
	}
	last := before[len(before)-1]
	switch {
	case last.Code != ledger.Ambiguous, v.Code == ledger.Unrepresentable:
		r.fail(at, "a reason that cannot stand beside those before it")
	case v.Code == ledger.Ambiguous && strings.Compare(last.TxnID, v.TxnID) >= 0:
		r.fail(at, "ambiguous transactions out of order")
	case v.Code == ledger.Ambiguous && len(before) >= ledger.MaxReasons:
		r.fail(at, "more than 16 ambiguous transactions")
	}
	return v
}
