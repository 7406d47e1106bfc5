package manifest

import (
	"crypto/sha256"
	"strconv"

	"amends/internal/ledger"
)

// AppendString appends s, which must be valid UTF-8, as a JSON string with the minimal escapes of RFC 8785:
// \b \t \n \f \r \" \\, lower case \u00xx for the other control characters, everything else as it is.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		if short := shortEscape(c); short != 0 {
			dst = append(dst, '\\', short)
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// shortEscape returns the letter of the two-character escape of c, 0 if it has none.
func shortEscape(c byte) byte {
	switch c {
	case '"', '\\':
		return c
	case '\b':
		return 'b'
	case '\t':
		return 't'
	case '\n':
		return 'n'
	case '\f':
		return 'f'
	case '\r':
		return 'r'
	}
	return 0
}

// AppendKey appends the canonical key encoding of k (S3): the bytes of a broker key, and what open keys are routed by.
func AppendKey(dst []byte, k ledger.StockKey) []byte {
	dst = append(dst, `{"item":`...)
	dst = AppendString(dst, k.Item)
	dst = append(dst, `,"location":`...)
	dst = AppendString(dst, k.Location)
	return append(dst, '}')
}

// Canonical returns the canonical JSON of the configuration, whose SHA-256 is its digest (S2).
func (c *Config) Canonical() []byte {
	b := append([]byte(nil), `{"schema_version":1,"namespace":`...)
	b = AppendString(b, c.Namespace)
	b = append(b, `,"source_incarnation":`...)
	b = AppendString(b, c.SourceIncarnation)
	b = append(b, `,"ledger_origin":"`...)
	b = c.LedgerOrigin.AppendTo(b)
	b = append(b, `","partitions":`...)
	b = strconv.AppendInt(b, int64(c.Partitions), 10)
	b = append(b, `,"quantity_scale":`...)
	b = strconv.AppendInt(b, int64(c.QuantityScale), 10)
	b = append(b, `,"stock_keys":[`...)
	for i, k := range c.StockKeys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"item":`...)
		b = AppendString(b, k.Key.Item)
		b = append(b, `,"location":`...)
		b = AppendString(b, k.Key.Location)
		b = append(b, `,"partition":`...)
		b = strconv.AppendInt(b, int64(k.Partition), 10)
		b = append(b, ',')
		b = k.Terms.append(b)
		b = append(b, '}')
	}
	b = append(b, ']')
	if c.OpenKeys != nil {
		b = append(b, `,"open_keys":{`...)
		b = c.OpenKeys.append(b)
		b = append(b, '}')
	}
	return append(b, '}')
}

// Digest returns the SHA-256 of Canonical (S2).
func (c *Config) Digest() [32]byte { return sha256.Sum256(c.Canonical()) }

// append appends the two members of t, without braces.
func (t *Terms) append(b []byte) []byte {
	b = append(b, `"opening_balance":`...)
	b = strconv.AppendInt(b, t.OpeningBalance, 10)
	b = append(b, `,"threshold":`...)
	return appendOptional(b, t.Threshold)
}

func appendOptional(b []byte, n *int64) []byte {
	if n == nil {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, *n, 10)
}
