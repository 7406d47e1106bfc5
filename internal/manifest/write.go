package manifest

import (
	"strconv"

	"amends/internal/ledger"
)

// Append appends m as a manifest file (S2): indented, one stock key a line, a line end last. Parse reads it back.
func (m *Manifest) Append(dst []byte) []byte {
	dst = append(dst, "{\n  \"source_topic\": "...)
	dst = AppendString(dst, m.SourceTopic)
	dst = append(dst, ",\n  \"config\": "...)
	dst = m.Config.appendIndented(dst)
	if o := m.Output; o != nil {
		dst = append(dst, ",\n  \"output\": {\"topic\": "...)
		dst = AppendString(dst, o.Topic)
		dst = append(dst, `, "incarnation": `...)
		dst = AppendString(dst, o.Incarnation)
		dst = append(dst, `, "partitions": `...)
		dst = strconv.AppendInt(dst, int64(o.Partitions), 10)
		dst = append(dst, '}')
	}
	return append(dst, "\n}\n"...)
}

// MarshalJSON returns the file form, so that a manifest can stand inside other JSON output.
func (m *Manifest) MarshalJSON() ([]byte, error) { return m.Append(nil), nil }

func (c *Config) appendIndented(b []byte) []byte {
	b = append(b, "{\n    \"schema_version\": 1,\n    \"namespace\": "...)
	b = AppendString(b, c.Namespace)
	b = append(b, ",\n    \"source_incarnation\": "...)
	b = AppendString(b, c.SourceIncarnation)
	b = append(b, ",\n    \"ledger_origin\": \""...)
	b = c.LedgerOrigin.AppendTo(b)
	b = append(b, "\",\n    \"partitions\": "...)
	b = strconv.AppendInt(b, int64(c.Partitions), 10)
	b = append(b, ",\n    \"quantity_scale\": "...)
	b = strconv.AppendInt(b, int64(c.QuantityScale), 10)
	b = append(b, ",\n    \"stock_keys\": ["...)
	for i, k := range c.StockKeys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n      "...)
		b = appendIndentedKey(b, k.Key, k.Partition)
		b = append(b, ", "...)
		b = k.Terms.appendSpaced(b)
		b = append(b, '}')
	}
	if len(c.StockKeys) > 0 {
		b = append(b, "\n    "...)
	}
	b = append(b, ']')
	if c.OpenKeys != nil {
		b = append(b, ",\n    \"open_keys\": {"...)
		b = c.OpenKeys.appendSpaced(b)
		b = append(b, '}')
	}
	return append(b, "\n  }"...)
}

func appendIndentedKey(b []byte, k ledger.StockKey, p ledger.Partition) []byte {
	b = append(b, `{"item": `...)
	b = AppendString(b, k.Item)
	b = append(b, `, "location": `...)
	b = AppendString(b, k.Location)
	b = append(b, `, "partition": `...)
	return strconv.AppendInt(b, int64(p), 10)
}

func (t *Terms) appendSpaced(b []byte) []byte {
	b = append(b, `"opening_balance": `...)
	b = strconv.AppendInt(b, t.OpeningBalance, 10)
	b = append(b, `, "threshold": `...)
	return appendOptional(b, t.Threshold)
}
