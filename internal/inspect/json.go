package inspect

import (
	"encoding/base64"
	"strconv"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/wire"
)

// showJSON writes members in the order of the documented surface, one list element a line.
func showJSON(v *shown) error {
	v.buf = append(v.buf[:0], `{"schema":1,"namespace":`...)
	v.buf = wire.AppendString(v.buf, v.namespace)
	v.buf = append(v.buf, `,"scope":`...)
	v.buf = wire.AppendString(v.buf, scope)
	lists := []struct {
		name string
		keep func(*store.ViewRow) bool
		one  func([]byte, *store.ViewRow) []byte
	}{
		{"balances", present(ledger.Balance), appendBalance},
		{"alerts", present(ledger.Alert), appendAlert},
		{"statuses", present(ledger.TrustStatus), appendStatus},
		{"envelopes", every, func(b []byte, r *store.ViewRow) []byte { return appendEnvelope(b, v.namespace, r) }},
	}
	for _, l := range lists {
		first := true
		v.open(l.name)
		err := v.rows(l.keep, func(r *store.ViewRow) error {
			v.element(&first)
			v.buf = l.one(v.buf, r)
			return v.spill()
		})
		if err != nil {
			return err
		}
		v.close(first)
	}
	v.positions()
	v.violations()
	v.buf = append(v.buf, "}\n"...)
	_, err := v.out.Write(v.buf)
	return err
}

func (v *shown) open(name string) {
	v.buf = append(v.buf, ",\n\""...)
	v.buf = append(v.buf, name...)
	v.buf = append(v.buf, `":[`...)
}

func (v *shown) element(first *bool) {
	if !*first {
		v.buf = append(v.buf, ',')
	}
	*first = false
	v.buf = append(v.buf, "\n  "...)
}

func (v *shown) close(empty bool) {
	if !empty {
		v.buf = append(v.buf, '\n')
	}
	v.buf = append(v.buf, ']')
}

// spill hands on what has been put together so far.
func (v *shown) spill() error {
	_, err := v.out.Write(v.buf)
	v.buf = v.buf[:0]
	return err
}

func (v *shown) positions() {
	v.open("positions")
	first := true
	for _, s := range v.states {
		frontier, sequence := position(s)
		v.element(&first)
		v.buf = number(append(v.buf, `{"partition":`...), int64(s.Partition))
		v.buf = number(append(v.buf, `,"frontier":`...), int64(frontier))
		v.buf = number(append(v.buf, `,"sequence":`...), int64(sequence))
		v.buf = append(v.buf, '}')
	}
	v.close(first)
}

func (v *shown) violations() {
	v.open("errors")
	first := true
	for _, e := range v.errors {
		v.element(&first)
		v.buf = number(append(v.buf, `{"partition":`...), int64(e.Partition))
		v.buf = number(append(v.buf, `,"offset":`...), int64(e.Offset))
		v.buf = wire.AppendString(append(v.buf, `,"reason":`...), e.Reason)
		v.buf = appendBase64(append(v.buf, `,"key":`...), e.Key)
		v.buf = appendBase64(append(v.buf, `,"value":`...), e.Value)
		v.buf = append(v.buf, '}')
	}
	v.close(first)
}

func appendBalance(b []byte, r *store.ViewRow) []byte {
	b = appendDated(b, r)
	b = number(append(b, `,"close":`...), r.Close)
	return appendVersion(b, r)
}

func appendAlert(b []byte, r *store.ViewRow) []byte {
	b = appendDated(b, r)
	b = number(append(b, `,"previous":`...), r.Previous)
	b = number(append(b, `,"close":`...), r.Close)
	b = number(append(b, `,"threshold":`...), r.Threshold)
	return appendVersion(b, r)
}

// appendStatus appends the key and the members of the status payload.
func appendStatus(b []byte, r *store.ViewRow) []byte {
	payload := wire.AppendStatus(nil, r.Status)
	b = appendNamed(b, r)
	b = append(b, ',')
	b = append(b, payload[1:len(payload)-1]...)
	return appendVersion(b, r)
}

func appendNamed(b []byte, r *store.ViewRow) []byte {
	b = wire.AppendString(append(b, `{"item":`...), r.ID.Key.Item)
	return wire.AppendString(append(b, `,"location":`...), r.ID.Key.Location)
}

func appendDated(b []byte, r *store.ViewRow) []byte {
	b = append(appendNamed(b, r), `,"day":"`...)
	return append(r.ID.Day.AppendTo(b), '"')
}

func appendVersion(b []byte, r *store.ViewRow) []byte {
	return append(number(append(b, `,"version":`...), int64(r.Version)), '}')
}

func number(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

// appendBase64 appends padded standard base64, null for absent bytes.
func appendBase64(dst, b []byte) []byte {
	if b == nil {
		return append(dst, "null"...)
	}
	dst = base64.StdEncoding.AppendEncode(append(dst, '"'), b)
	return append(dst, '"')
}
