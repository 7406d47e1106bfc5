package manifest

import "amends/internal/ledger"

// Terms returns what k starts with and is watched for, and whether the namespace admits k: it is listed, or
// keys are open (S2). The key's own limits are the caller's to check.
func (c *Config) Terms(k ledger.StockKey) (Terms, bool) {
	if i, ok := c.index[k]; ok {
		return c.StockKeys[i].Terms, true
	}
	if c.OpenKeys != nil {
		return *c.OpenKeys, true
	}
	return Terms{}, false
}

// Route returns the partition of k, its listed one or that of Kafka's default partitioner for an open key, and
// whether the namespace admits k (S2).
func (c *Config) Route(k ledger.StockKey) (ledger.Partition, bool) {
	if i, ok := c.index[k]; ok {
		return c.StockKeys[i].Partition, true
	}
	if c.OpenKeys == nil {
		return 0, false
	}
	h := murmur2(AppendKey(make([]byte, 0, 128), k)) & 0x7fffffff
	return ledger.Partition(h % uint32(c.Partitions)), true
}

// murmur2 is MurmurHash2 with the seed and byte order of Kafka's clients.
func murmur2(b []byte) uint32 {
	const m = 0x5bd1e995
	h := 0x9747b28c ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		k *= m
		k ^= k >> 24
		k *= m
		h *= m
		h ^= k
	}
	for i := len(b) - 1; i >= 0; i-- {
		h ^= uint32(b[i]) << (8 * i)
	}
	if len(b) > 0 {
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}
