package broker

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fetchPool keeps the memory of fetched batches for the next ones: the bytes after decompression, and the records.
type fetchPool struct {
	bytes   sync.Pool // of *[]byte
	records sync.Pool // of *[]kgo.Record
}

// The largest batch whose memory is kept.
const (
	keptBytes   = 4 << 20 // decompressed
	keptRecords = 1 << 15
)

// GetDecompressBytes returns memory for a batch, with what it grew to before.
func (p *fetchPool) GetDecompressBytes(compressed []byte, _ kgo.CompressionCodecType) []byte {
	if b, ok := p.bytes.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 0, min(8*len(compressed), keptBytes))
}

// PutDecompressBytes takes the memory back.
func (p *fetchPool) PutDecompressBytes(b []byte) {
	if cap(b) <= keptBytes {
		p.bytes.Put(&b)
	}
}

// GetRecords returns at least n records.
func (p *fetchPool) GetRecords(n int) []kgo.Record {
	if r, ok := p.records.Get().(*[]kgo.Record); ok && cap(*r) >= n {
		return *r
	}
	return make([]kgo.Record, n)
}

// PutRecords takes them back.
func (p *fetchPool) PutRecords(r []kgo.Record) {
	if cap(r) <= keptRecords {
		p.records.Put(&r)
	}
}
