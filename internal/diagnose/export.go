package diagnose

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"

	"amends/internal/health"
	"amends/internal/ledger"
	"amends/internal/store/postgres/reader"
)

// exportPage is how many records an export holds in memory: at their largest 36 MB.
const exportPage = 500

// Export writes every rejected record as a line that source load -format raw publishes exactly so (design section 9), by partition
// and offset, and returns how many. A record of which only the beginning is kept cannot be; left is told of it.
func Export(ctx context.Context, from health.Namespace, w io.Writer, left func(*Record)) (written int64, err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	err = from.Look(ctx, func(s *reader.Snapshot) error {
		at := reader.Place{Partition: -1}
		for {
			page, err := s.RejectedRecords(ctx, at.Partition, at.Offset, exportPage)
			if err != nil || len(page) == 0 {
				return err
			}
			for _, one := range page {
				at = reader.Place{Partition: one.Partition, Offset: one.Offset}
				r := record(one)
				if !r.Whole() {
					left(&r)
					continue
				}
				if _, err := out.Write(rawLine(nil, one.Partition, one.Evidence.Key, one.Evidence.Value)); err != nil {
					return fmt.Errorf("write: %w", err)
				}
				written++
			}
		}
	})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return written, fmt.Errorf("export rejected records: %w", err)
	}
	return written, nil
}

// rawLine appends one line of the loader's raw format.
func rawLine(b []byte, p ledger.Partition, key, value []byte) []byte {
	b = strconv.AppendInt(append(b, `{"partition":`...), int64(p), 10)
	b = appendBase64(append(b, `,"key":`...), key)
	b = appendBase64(append(b, `,"value":`...), value)
	return append(b, "}\n"...)
}

func appendBase64(dst, b []byte) []byte {
	if b == nil {
		return append(dst, "null"...)
	}
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), b), '"')
}
