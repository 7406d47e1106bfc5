package oracle

import "amends/internal/ledger"

// Terms are what a stock key starts with and is watched for (S2). A nil Threshold raises no alerts.
type Terms struct {
	Threshold *int64
	Opening   int64
}

// Key is a configured stock key with its explicit partition (S2).
type Key struct {
	Terms
	Key       ledger.StockKey
	Partition ledger.Partition
}

// Config is what of a namespace's configuration determines its outputs (S2). Partitions is 1..ledger.MaxPartitions;
// a nil Open rejects every key that is not listed.
type Config struct {
	Open       *Terms
	Keys       []Key
	Origin     ledger.Day
	Partitions int32
}

// placed is where a key lives and what it starts with.
type placed struct {
	terms     Terms
	partition ledger.Partition
}

// place returns the terms and the partition of key, and false where it is neither configured nor open.
func (o *Oracle) place(key ledger.StockKey) (placed, bool) {
	if p, ok := o.listed[key]; ok {
		return p, true
	}
	if o.open == nil {
		return placed{}, false
	}
	hash := murmur2(canonicalKey(key)) & 0x7fffffff
	return placed{terms: *o.open, partition: ledger.Partition(hash % uint32(o.partitions))}, true
}

// canonicalKey is the canonical key encoding of S3: fixed order, no white space, RFC 8785 escapes.
func canonicalKey(key ledger.StockKey) []byte {
	b := make([]byte, 0, len(key.Item)+len(key.Location)+32)
	b = quote(append(b, `{"item":`...), key.Item)
	b = quote(append(b, `,"location":`...), key.Location)
	return append(b, '}')
}

func quote(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	short := [...]byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r', '"': '"', '\\': '\\'}
	b = append(b, '"')
	for i := range len(s) {
		c := s[i]
		switch {
		case int(c) < len(short) && short[c] != 0:
			b = append(b, '\\', short[c])
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// murmur2 is the hash of Kafka's default partitioner.
func murmur2(b []byte) uint32 {
	const m = 0x5bd1e995
	h := uint32(0x9747b28c) ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := (uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24) * m
		h = h*m ^ (k^k>>24)*m
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
