package postgres_test

import (
	"context"
	"errors"
	"testing"

	"amends/internal/ledger"
	"amends/internal/store"
)

// I15: a quarantine row of no rejected record is found by whoever reads the whole journal.
func TestI15SurplusQuarantineRowIsFound(t *testing.T) {
	t.Parallel()
	n, url := openNamespace(t)
	ctx := context.Background()
	read := func() error {
		return n.Snapshot(ctx, func(s store.Snapshot) error {
			return s.Journal(ctx, 0, func(*ledger.Decision) error { return nil })
		})
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	execSQL(t, connect(t, url), `INSERT INTO amends.quarantine (source_offset, key_length, value_length, namespace_id, partition, rejection,
		key_sha256, value_sha256) SELECT 7, 0, 0, namespace_id, 0, 2, sha256(''), sha256('') FROM amends.namespaces`)
	if err := read(); !errors.Is(err, store.ErrIntegrity) {
		t.Errorf("got %v", err)
	}
}
