package workload

import (
	"bytes"
	"slices"
	"strings"

	"amends/internal/ledger"
	"amends/internal/wire"
)

// Fault is a way in which a record fails validation: a row of the table of S3, by its order number.
type Fault uint8

// The faults, in the order of S3. A record with several has the code of the first.
const (
	FaultSize Fault = iota + 1
	FaultSyntax
	FaultSchema
	FaultMember
	FaultValue
	FaultHorizon
	FaultUnknown  // needs a setting without open keys
	FaultMismatch //
	FaultRouting  // needs two partitions
)

// Code returns the rejection code of S3 for f.
func (f Fault) Code() ledger.Rejection {
	return [...]ledger.Rejection{0, ledger.TooLarge, ledger.Malformed, ledger.UnsupportedSchema, ledger.Malformed, ledger.InvalidValue,
		ledger.OutOfHorizon, ledger.UnknownKey, ledger.KeyMismatch, ledger.Routing}[f]
}

// Possible reports whether records with f can exist under s.
func (f Fault) Possible(s Setting) bool {
	return f >= FaultSize && f <= FaultRouting && (f != FaultUnknown || s.Open == nil) && (f != FaultRouting || s.Partitions > 1)
}

// draft is a record before it becomes bytes, with what is done to the bytes after that.
type draft struct {
	fields    []field
	value     []func([]byte) []byte
	key       []byte
	partition ledger.Partition
}

// Spoil returns the key, value and partition of a record that would state a, at home on partition p, but for these
// faults, each of which must be Possible under s. The variant of each fault is random. The offset is the caller's.
func Spoil(r *Rand, s Setting, p ledger.Partition, a ledger.Assertion, faults ...Fault) ledger.SourceRecord {
	if slices.Contains(faults, FaultHorizon) && a.Payload.State != ledger.Active {
		a.Payload = ledger.Payload{State: ledger.Active, Kind: ledger.Receipt, Quantity: 1, Day: s.Origin}
	}
	if slices.Contains(faults, FaultUnknown) {
		a.Key.Item = strings.Repeat("?", 1+r.Below(20))
	}
	d := &draft{fields: fieldsOf(a), key: wire.AppendKey(nil, a.Key), partition: p}
	faults = slices.Clone(faults)
	slices.Sort(faults)
	faults = slices.Compact(faults)
	for _, f := range slices.Backward(faults) { // the first fault last, so that it prevails
		switch f {
		case FaultSize:
			d.oversize(r)
		case FaultSyntax:
			d.breakSyntax(r)
		case FaultSchema:
			d.set("schema", pick(r, []string{"0", "2", "3", "10", "9223372036854775807", "9223372036854775808", strings.Repeat("9", 400)}))
			d.junk(r)
		case FaultMember:
			d.breakMember(r)
		case FaultValue:
			d.breakValue(r)
		case FaultHorizon:
			d.set("day", `"`+outside(r, s.Origin).String()+`"`)
		case FaultMismatch:
			d.breakKey(r, a.Key)
		case FaultRouting:
			d.partition = (p + 1 + ledger.Partition(r.Below(int(s.Partitions)-1))) % ledger.Partition(s.Partitions)
		}
	}
	v := appendObject(nil, d.fields)
	if r.Percent(20) {
		v = appendObject(nil, d.shuffled(r))
	}
	for _, change := range slices.Backward(d.value) {
		v = change(v)
	}
	return ledger.SourceRecord{Key: d.key, Value: v, Partition: d.partition}
}

func (d *draft) shuffled(r *Rand) []field {
	shuffle(r, d.fields)
	return d.fields
}

// set gives a member another value, adding it where it is missing.
func (d *draft) set(name, value string) {
	for i := range d.fields {
		if d.fields[i].name == name {
			d.fields[i].value = []byte(value)
			return
		}
	}
	d.fields = append(d.fields, field{name, []byte(value)})
}

func (d *draft) drop(name string) {
	d.fields = slices.DeleteFunc(d.fields, func(f field) bool { return f.name == name })
}

// text changes the bytes of the value once they exist.
func (d *draft) text(change func([]byte) []byte) { d.value = append(d.value, change) }

func (d *draft) oversize(r *Rand) {
	n := pick(r, []int{1, 1, 2, 100})
	pad := func(b []byte, limit int) []byte {
		return append(append(make([]byte, 0, limit+n), b...), bytes.Repeat([]byte{' '}, max(limit-len(b)+n, 0))...)
	}
	if r.Percent(40) {
		d.key = pad(d.key, ledger.MaxKeyBytes)
		if r.Percent(80) {
			return
		}
	}
	d.value = slices.Insert(d.value, 0, func(b []byte) []byte { return pad(b, ledger.MaxValueBytes) })
}

// outside is a day that is not within the horizon.
func outside(r *Rand, origin ledger.Day) ledger.Day {
	after := origin + ledger.HorizonDays
	days := []ledger.Day{ledger.MinDay, ledger.MaxDay, origin - 1, origin - 365, after, after + 1, after + 365}
	for {
		if d := pick(r, days); d >= ledger.MinDay && d <= ledger.MaxDay && (d < origin || d >= after) {
			return d
		}
	}
}
