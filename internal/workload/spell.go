package workload

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"amends/internal/ledger"
	"amends/internal/wire"
)

// field is one member of a JSON object: its name and the bytes of its value.
type field struct {
	name  string
	value []byte
}

// fieldsOf are the members of S3 that state a, in the order of S3.
func fieldsOf(a ledger.Assertion) []field {
	text := func(s string) []byte { return wire.AppendString(nil, s) }
	fs := []field{
		{"schema", []byte("1")}, {"txn_id", text(a.TxnID)}, {"revision", strconv.AppendInt(nil, int64(a.Revision), 10)},
		{"state", text(a.Payload.State.String())}, {"item", text(a.Key.Item)}, {"location", text(a.Key.Location)},
	}
	if a.Payload.State == ledger.Active {
		fs = append(fs, field{"day", text(a.Payload.Day.String())}, field{"kind", text(a.Payload.Kind.String())},
			field{"quantity", strconv.AppendInt(nil, int64(a.Payload.Quantity), 10)})
	}
	return fs
}

// appendObject appends an object of these members in their order, without white space.
func appendObject(dst []byte, fs []field) []byte {
	dst = append(dst, '{')
	for i, f := range fs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(wire.AppendString(dst, f.name), ':'), f.value...)
	}
	return append(dst, '}')
}

// appendSpelled appends the same object in another spelling that S3 allows: member order, white space, escapes.
func appendSpelled(r *Rand, dst []byte, fs []field) []byte {
	shuffle(r, fs)
	space := func() {
		for r.Percent(20) {
			dst = append(dst, " \t\n\r"[r.Below(4)])
		}
	}
	space()
	dst = append(dst, '{')
	for i, f := range fs {
		if i > 0 {
			dst = append(dst, ',')
		}
		space()
		dst = appendEscaped(r, dst, f.name)
		space()
		dst = append(dst, ':')
		space()
		if s, ok := unquote(f.value); ok {
			dst = appendEscaped(r, dst, s)
		} else {
			dst = append(dst, f.value...)
		}
		space()
	}
	dst = append(dst, '}')
	space()
	return dst
}

// unquote returns what a string without escapes says, and false for anything else.
func unquote(v []byte) (string, bool) {
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	for _, c := range v {
		if c == '\\' {
			return "", false
		}
	}
	return string(v[1 : len(v)-1]), true
}

// appendEscaped appends a JSON string in which some characters are escaped without need.
func appendEscaped(r *Rand, dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i, c := range s {
		switch {
		case r.Percent(90) && c >= ' ' && c != '"' && c != '\\':
			dst = append(dst, s[i:i+utf8.RuneLen(c)]...)
		case c == '/' && r.Percent(50):
			dst = append(dst, `\/`...)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			dst = appendUnit(r, appendUnit(r, dst, high), low)
		default:
			dst = appendUnit(r, dst, c)
		}
	}
	return append(dst, '"')
}

func appendUnit(r *Rand, dst []byte, c rune) []byte {
	dst = append(dst, '\\', 'u')
	for shift := 12; shift >= 0; shift -= 4 {
		dst = append(dst, pick(r, []string{"0123456789abcdef", "0123456789ABCDEF"})[c>>shift&15])
	}
	return dst
}

// spelledKey is a broker key of k, canonical or in another spelling that S3 allows.
func spelledKey(r *Rand, k ledger.StockKey, percent int) []byte {
	if !r.Percent(percent) {
		return wire.AppendKey(nil, k)
	}
	return appendSpelled(r, nil, []field{{"item", wire.AppendString(nil, k.Item)}, {"location", wire.AppendString(nil, k.Location)}})
}
