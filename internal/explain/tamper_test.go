package explain_test

import (
	"context"
	"errors"
	"testing"

	"amends/internal/explain"
	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
)

// A journal that contradicts itself is never explained away: the lines must meet what was published, and a damaged body
// is refused.
func TestTamperedJournalIsNotExplained(t *testing.T) {
	t.Parallel()
	cfg, records := example(t)
	s := newStored(t, cfg)
	for _, rec := range records {
		s.add(t, rec)
	}
	key := ledger.StockKey{Item: "widget", Location: "berlin"}
	for _, c := range []struct{ what, change, back string }{
		{"another quantity", "UPDATE amends.journal SET quantity = quantity + 1 WHERE source_offset = 3", "UPDATE amends.journal SET quantity = quantity - 1 WHERE source_offset = 3"},
		{"another class", "UPDATE amends.journal SET class = 1 WHERE source_offset = 1", "UPDATE amends.journal SET class = 2 WHERE source_offset = 1"},
		{"a conflict of nothing", "UPDATE amends.journal SET class = 3 WHERE source_offset = 0", "UPDATE amends.journal SET class = 2 WHERE source_offset = 0"},
		{"a damaged body", "UPDATE amends.journal SET body = set_byte(body, 3, get_byte(body, 3) # 1) WHERE source_offset = 2",
			"UPDATE amends.journal SET body = set_byte(body, 3, get_byte(body, 3) # 1) WHERE source_offset = 2"},
	} {
		_, err := s.conn.Exec(context.Background(), c.change)
		s.ok(err)
		err = s.namespace.Look(context.Background(), func(from *reader.Snapshot) error {
			_, err := explain.Of(context.Background(), from, cfg, &explain.Question{Key: key, Day: cfg.LedgerOrigin + 1, Most: 10})
			return err
		})
		if !errors.Is(err, store.ErrIntegrity) {
			t.Errorf("%s: %v", c.what, err)
		}
		_, err = s.conn.Exec(context.Background(), c.back)
		s.ok(err)
	}
	if x := s.of(explain.Question{Key: key, Day: cfg.LedgerOrigin + 1, Most: 10}); x.Balance.Close != 50 {
		t.Errorf("%+v", x.Balance)
	}
}

// Outputs whose key has no row are not left out.
func TestOutputsOfALostKeyAreNotLeftOut(t *testing.T) {
	t.Parallel()
	cfg, records := example(t)
	s := newStored(t, cfg)
	for _, rec := range records {
		s.add(t, rec)
	}
	_, err := s.conn.Exec(context.Background(), "DELETE FROM amends.keys")
	s.ok(err)
	for what, read := range map[string]func(context.Context, *reader.Snapshot) error{
		"a tail": func(ctx context.Context, from *reader.Snapshot) error {
			tail, err := explain.Start(ctx, from, cfg, nil, true)
			s.ok(err)
			return tail.Round(ctx, from, func(*explain.Version) error { return nil })
		},
		"a comparison": func(ctx context.Context, from *reader.Snapshot) error {
			return explain.Compare(ctx, from, cfg, explain.Span{After: explain.Said{Frontier: 5, Next: 11}}, nil, func(*explain.Difference) error { return nil })
		},
	} {
		s.look(func(ctx context.Context, from *reader.Snapshot) {
			if err := read(ctx, from); !errors.Is(err, store.ErrIntegrity) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}
