package audit_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"amends/internal/ledger"
	"amends/internal/verify"
)

// segments returns the files of the output topic's log, by partition.
func (w *world) segments() map[ledger.Partition]string {
	w.Helper()
	files := map[ledger.Partition]string{}
	w.ok(filepath.WalkDir(w.dir, func(path string, _ os.DirEntry, err error) error {
		var p ledger.Partition
		folder := filepath.Base(filepath.Dir(path))
		if err == nil && filepath.Ext(path) == ".dat" && strings.Contains(filepath.Dir(path), "output") {
			if _, scan := fmt.Sscanf(folder[strings.LastIndexAny(folder, "-/")+1:], "%d", &p); scan != nil {
				return scan
			}
			files[p] = path
		}
		return err
	}))
	return files
}

// batches splits a segment, with the records decompressed.
func batches(t *testing.T, raw []byte) (all []kmsg.RecordBatch, records [][]kmsg.Record) {
	t.Helper()
	decompress := kgo.DefaultDecompressor()
	for len(raw) > 0 {
		size := 12 + int(binary.BigEndian.Uint32(raw[8:]))
		var b kmsg.RecordBatch
		if err := b.ReadFrom(raw[:size]); err != nil {
			t.Fatal(err)
		}
		raw = raw[size:]
		body, err := decompress.Decompress(b.Records, kgo.CompressionCodecType(b.Attributes&7))
		if err != nil {
			t.Fatal(err)
		}
		var own []kmsg.Record
		for range b.NumRecords {
			length, n := binary.Varint(body)
			var r kmsg.Record
			if err := r.ReadFrom(body[:n+int(length)]); err != nil {
				t.Fatal(err)
			}
			body = body[n+int(length):]
			own = append(own, r)
		}
		all, records = append(all, b), append(records, own)
	}
	return all, records
}

// segment writes batches again, not compressed, each with the checksum that belongs to it.
func segment(all []kmsg.RecordBatch, records [][]kmsg.Record) (raw []byte) {
	for i, b := range all {
		b.Records = nil
		for _, r := range records[i] {
			r.Length = 0
			var prefix [binary.MaxVarintLen64]byte
			whole := r.AppendTo(nil)[1:] // a length of 0 takes one byte
			b.Records = append(append(b.Records, prefix[:binary.PutVarint(prefix[:], int64(len(whole)))]...), whole...)
		}
		b.Attributes &^= 7
		b.Length = int32(49 + len(b.Records))
		at := len(raw)
		raw = b.AppendTo(raw)
		binary.BigEndian.PutUint32(raw[at+17:], crc32.Checksum(raw[at+21:], crc32.MakeTable(crc32.Castagnoli)))
	}
	return raw
}

// spoil changes a record's key or value in one of the ways in which it would still pass for one, or not.
func spoil(r *rand.Rand, x *kmsg.Record) string {
	digits := func(b []byte) (at []int) {
		for i, c := range b {
			if c >= '0' && c <= '9' {
				at = append(at, i)
			}
		}
		return at
	}
	value := append([]byte{}, x.Value...)
	switch r.IntN(6) {
	case 0: // a digit of a number, a day or an identifier
		at := digits(value)
		i := at[r.IntN(len(at))]
		value[i] = '0' + (value[i]-'0'+1+byte(r.IntN(9)))%10
		x.Value = value
		return fmt.Sprintf("digit %d of the value", i)
	case 1:
		i := r.IntN(len(value))
		value[i] ^= 1 << r.IntN(8)
		x.Value = value
		return fmt.Sprintf("a bit of byte %d of the value", i)
	case 2:
		x.Value = value[:r.IntN(len(value))]
		return "the value is cut off"
	case 3:
		x.Value = append(value, ' ')
		return "a space after the value"
	case 4:
		x.Value = nil
		return "no value"
	}
	x.Key = append([]byte{' '}, x.Key...)
	return "another spelling of the key"
}

// I20: each output record that is rewritten in the stopped broker's log, with a valid checksum, is found and named.
// Shows I20.
func TestI20RewrittenOutputRecordsAreFoundAndNamed(t *testing.T) {
	t.Parallel()
	w := damaged(t)
	r := rand.New(rand.NewPCG(20, 4))
	files := w.segments()
	if len(files) != 2 {
		t.Fatalf("segments %v", files)
	}
	for n := range 40 {
		p := ledger.Partition(n % 2)
		w.ok(w.broker.Stop())
		whole, err := os.ReadFile(files[p])
		w.ok(err)
		all, records := batches(t, whole)
		i := r.IntN(len(all))
		j := r.IntN(len(records[i]))
		at := all[i].FirstOffset + int64(records[i][j].OffsetDelta)
		what := spoil(r, &records[i][j])
		w.ok(os.WriteFile(files[p], segment(all, records), 0o600))
		w.startBroker()
		report := w.judged(n)
		if report.Status != verify.Drift || report.First.What != verify.Topic || report.First.Partition != p || report.First.Offset != at {
			t.Errorf("record %d/%d, %s: %s %v, first named: %+v", p, at, what, report.Status, report.Reasons, report.First)
		}
		w.ok(w.broker.Stop())
		w.ok(os.WriteFile(files[p], whole, 0o600))
		w.startBroker()
	}
	if report := w.judged(0); report.Status != verify.Blocked {
		t.Errorf("put back: %s, first %+v", report.Status, report.First)
	}
}
