package recovery

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
)

// A broker that gives no record for readPatience is away. One whose reader is slow, as where the database is, is not.
func TestPatienceIsForTheBroker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		broker, reader time.Duration // between two records
		records        int
		fails          error
	}{
		"both in time":          {broker: readPatience - time.Second, reader: time.Second, records: 3},
		"the broker is away":    {broker: readPatience + time.Second, fails: broker.ErrUnavailable},
		"the reader takes long": {broker: time.Second, reader: 2 * readPatience, records: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				read := func(ctx context.Context, _ ledger.Partition, at, end ledger.Frontier, fn func(ledger.SourceRecord) error) (ledger.Frontier, error) {
					for ; at < end; at++ {
						select {
						case <-ctx.Done():
							return at, ctx.Err()
						case <-time.After(c.broker):
						}
						if err := ctx.Err(); err != nil {
							return at, err
						}
						if err := fn(ledger.SourceRecord{Offset: ledger.Offset(at)}); err != nil {
							return at, err
						}
					}
					return at, nil
				}
				var failed error
				next, stop := iter.Pull(sourceRecords(t.Context(), read, 0, 3, &failed))
				defer stop()
				n := 0
				for _, more := next(); more; _, more = next() {
					n++
					time.Sleep(c.reader)
				}
				if n != c.records || !errors.Is(failed, c.fails) {
					t.Errorf("%d records, %v; want %d, %v", n, failed, c.records, c.fails)
				}
			})
		})
	}
}
