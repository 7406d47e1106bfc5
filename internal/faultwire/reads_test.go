package faultwire_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/checkup"
	"amends/internal/store/postgres/console"
	"amends/internal/store/postgres/reader"
)

// read is one method of a snapshot with what it returns, but for clocks.
type read func(context.Context, *reader.Snapshot) (any, error)

// reads holds every method of a snapshot that is not one of store.Snapshot, which the kind "snapshot" calls.
func reads(l *looked) map[string]read {
	to := ledger.Frontier(lookedEnd)
	return map[string]read{
		"AuditState": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			a, err := s.AuditState(ctx)
			a.Now = time.Time{}
			return a, err
		},
		"AuditChunks": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			var all [][]byte
			err := s.AuditChunks(ctx, 0, func(b []byte) error { all = append(all, bytes.Clone(b)); return nil })
			return all, err
		},
		"Decided": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			var all []*ledger.Decision
			err := s.Decided(ctx, 0, -1, lookedEnd, func(d *ledger.Decision) error { all = append(all, d); return nil })
			return all, err
		},
		"Rows": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			var all []store.ViewRow
			err := s.Rows(ctx, 0, []ledger.OutputID{{Key: l.key.Key, Day: origin, Kind: ledger.Balance}, {Key: l.key.Key, Day: origin + 1, Kind: ledger.Balance}},
				func(v store.ViewRow) error { all = append(all, v); return nil })
			slices.SortFunc(all, func(a, b store.ViewRow) int { return int(a.ID.Day - b.ID.Day) })
			return all, err
		},
		"Backend": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			_, running, err := s.Backend(ctx, l.checkpointer)
			return running, err
		},
		"ServerVersion":    func(ctx context.Context, s *reader.Snapshot) (any, error) { return s.ServerVersion(ctx) },
		"CountBlocked":     func(ctx context.Context, s *reader.Snapshot) (any, error) { return s.CountBlocked(ctx) },
		"BlockedKeys":      func(ctx context.Context, s *reader.Snapshot) (any, error) { return s.BlockedKeys(ctx, -1, 0, 10) },
		"CountRejected":    func(ctx context.Context, s *reader.Snapshot) (any, error) { return s.CountRejected(ctx) },
		"RejectedRecords":  func(ctx context.Context, s *reader.Snapshot) (any, error) { return s.RejectedRecords(ctx, -1, 0, 10) },
		"CountConflicting": func(ctx context.Context, s *reader.Snapshot) (any, error) { return s.CountConflicting(ctx) },
		"LastVerification": func(ctx context.Context, s *reader.Snapshot) (any, error) { return s.LastVerification(ctx) },
		"Frontiers":        func(ctx context.Context, s *reader.Snapshot) (any, error) { return s.Frontiers(ctx) },
		"OldestWork":       func(ctx context.Context, s *reader.Snapshot) (any, error) { return s.OldestWork(ctx) },
		"Leases":           func(ctx context.Context, s *reader.Snapshot) (any, error) { return s.Leases(ctx) },
		"FindKeys": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			return s.FindKeys(ctx, []ledger.StockKey{l.key.Key, {Item: "none"}})
		},
		"Locations": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			return s.Locations(ctx, l.key.Key.Item, 10)
		},
		"DecidedBy": func(ctx context.Context, s *reader.Snapshot) (any, error) { return s.DecidedBy(ctx, 0, to, l.at) },
		"Underway": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			underway, err := s.Underway(ctx, 0, to)
			return []bool{underway}, err
		},
		"RecordedOf": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			return s.RecordedOf(ctx, 0, l.key.ID, []string{"T-1"})
		},
		"CountsOf": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			return s.CountsOf(ctx, 0, l.key.ID, origin)
		},
		"Publications": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			return s.Publications(ctx, 0, []ledger.Sequence{0, 1})
		},
		"ConflictingRecords": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			return s.ConflictingRecords(ctx, reader.Place{Partition: -1}, 10)
		},
		"Entries": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			return entriesOf(func(f func(*reader.Entry) error) error { return s.Entries(ctx, l.key, 0, to, true, f) })
		},
		"Outputs": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			return entriesOf(func(f func(*reader.Entry) error) error { return s.Outputs(ctx, 0, 0, to, 10, f) })
		},
		"Changed": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			return entriesOf(func(f func(*reader.Entry) error) error { return s.Changed(ctx, 0, 0, to, f) })
		},
		"PublishedBy": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			next, source, err := s.PublishedBy(ctx, 0, l.at)
			return []any{next, source}, err
		},
		"Recorded": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			all := map[ledger.Offset]ledger.RecordDigest{}
			err := s.Recorded(ctx, 0, func(o ledger.Offset, d ledger.RecordDigest) error { all[o] = d; return nil })
			return all, err
		},
		"Rebuild": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			made, exists, err := s.Rebuild(ctx, l.rebuilt)
			return []any{made, exists}, err
		},
		"Moment": func(ctx context.Context, s *reader.Snapshot) (any, error) {
			m, err := s.Moment(ctx)
			m.Now = time.Time{}
			return m, err
		},
	}
}

// entriesOf keeps what a row function may not.
func entriesOf(stream func(func(*reader.Entry) error) error) (any, error) {
	var all []string
	err := stream(func(e *reader.Entry) error {
		text, err := json.Marshal(e)
		all = append(all, string(text))
		return err
	})
	return all, err
}

// lookedAt is a source that leaves something for every read: rejected, conflicting and blocked records too.
func lookedAt() []batch {
	return append(slices.Clone(example[:2]), batch{[]string{
		`{"schema":1,"txn_id":"T-1","revision":2,"state":"active","item":"a","location":"x","day":"2026-01-01","kind":"receipt","quantity":71}`,
		`{"schema":1,"txn_id":"T-3","revision":1,"state":"active","item":"a","location":"x","day":"2026-01-01","kind":"count","quantity":9}`,
	}, lookedEnd})
}

const lookedEnd = 7

// looked is the namespace that all cases of a kind read, and what is right there.
type looked struct {
	key          reader.StoredKey
	at           time.Time // after everything
	rebuilt      string
	checkpointer int32
	want         map[string]any
}

// lookAt fills a namespace and reads it directly.
func lookAt(c *cell, names []string) *looked {
	ctx := context.Background()
	l := &looked{rebuilt: rebuilt(c), want: map[string]any{}}
	must(work(c.cfg, c.direct, lookedAt(), lookedEnd))
	must(c.relay(c.direct))
	must(c.view(c.direct))
	audited(c)
	must(c.direct.RecordVerification(ctx, store.Verification{Started: time.Unix(0, 0), Status: "PASS", Boundary: []store.Cut{}}))
	_, err := rebuildSteps(c)[0].change(ctx, c.direct.Upkeep())
	must(err)
	must(c.conn.QueryRow(ctx, "SELECT pid, clock_timestamp() FROM pg_stat_activity WHERE backend_type = 'checkpointer'").Scan(&l.checkpointer, &l.at))
	must(c.direct.Look(ctx, func(s *reader.Snapshot) error {
		keys, err := s.FindKeys(ctx, []ledger.StockKey{{Item: "a", Location: "x"}})
		must(err)
		l.key = keys[0]
		for _, name := range names {
			got, err := reads(l)[name](ctx, s)
			must(err)
			ensure(!reflect.ValueOf(got).IsZero(), "%s finds nothing: a half could not be told from all", name)
			l.want[name] = got
		}
		return nil
	}))
	return l
}

// errHalf: a read returned something else than there is and no error.
var errHalf = errors.New("a read says success and returned something else")

// readKind calls some of the reads in one snapshot. Each that says success must have returned everything.
func readKind(name string, names ...string) *kind {
	var l *looked
	return &kind{name: name, op: name, looks: true,
		setup: func(c *cell) { l = lookAt(c, names) },
		run: func(c *cell) error {
			return again(func() error {
				return c.call(context.Background(), name, func(ctx context.Context) error {
					return c.ns.Look(ctx, func(s *reader.Snapshot) error {
						for _, one := range names {
							got, err := reads(l)[one](ctx, s)
							if err != nil {
								return err
							}
							if !reflect.DeepEqual(got, l.want[one]) {
								return fmt.Errorf("%w: %s: %+v, not %+v", errHalf, one, got, l.want[one])
							}
						}
						return nil
					})
				})
			})
		}}
}

// readGroups is which kind calls which reads.
func readGroups() map[string][]string {
	return map[string][]string{
		"reads of the state":         {"Moment", "Frontiers", "OldestWork", "Leases", "LastVerification", "ServerVersion", "Backend"},
		"reads of an audit":          {"AuditState", "AuditChunks", "Decided", "Rows"},
		"reads of exceptions":        {"CountBlocked", "BlockedKeys", "CountRejected", "RejectedRecords", "CountConflicting", "ConflictingRecords", "RecordedOf", "CountsOf"},
		"reads of an explanation":    {"FindKeys", "Locations", "Entries", "Outputs", "Changed", "Publications", "DecidedBy", "Underway"},
		"reads of what is published": {"PublishedBy"},
		"reads of a replay":          {"Recorded", "Rebuild"},
	}
}

// readKinds are the kinds of readGroups.
func readKinds() (all []*kind) {
	groups := readGroups()
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		k := readKind(name, groups[name]...)
		k.sparse = name == "reads of what is published" // it asks the same 62 times
		all = append(all, k)
	}
	return all
}

// Every method of a snapshot is in a type of transaction that meets every fault.
func TestS12EveryReadOfASnapshotIsEnumerated(t *testing.T) {
	called := map[string]int{}
	for m := range reflect.TypeFor[store.Snapshot]().NumMethod() {
		called[reflect.TypeFor[store.Snapshot]().Method(m).Name]++
	}
	for _, names := range readGroups() {
		for _, name := range names {
			called[name]++
		}
	}
	table := reads(&looked{})
	for m := range reflect.TypeFor[*reader.Snapshot]().NumMethod() {
		name := reflect.TypeFor[*reader.Snapshot]().Method(m).Name
		if called[name] != 1 {
			t.Errorf("Snapshot.%s is in %d types of transactions, want 1", name, called[name])
		}
		delete(called, name)
		delete(table, name)
	}
	for name := range called {
		t.Errorf("%s is no method of a snapshot", name)
	}
	for name := range table {
		t.Errorf("%s is in the table and no method of a snapshot", name)
	}
}

// serverKinds look at the server and its schema from outside of a namespace.
func serverKinds() []*kind {
	ctx := context.Background()
	nothing := func(*cell) {}
	return []*kind{
		{name: "plan migrations", op: "plan", setup: nothing, run: func(c *cell) error {
			return again(func() error {
				return c.call(ctx, "plan", func(ctx context.Context) error { _, err := c.db.MigrationPlan(ctx); return err })
			})
		}},
		{name: "look at server", op: "look", setup: nothing, run: func(c *cell) error {
			return again(func() error {
				return c.call(ctx, "look", func(ctx context.Context) error {
					s, err := checkup.Look(ctx, c.proxy.URL())
					if err == nil && (len(s.Settings) == 0 || len(s.Privileges) == 0 || s.Version == 0) {
						return fmt.Errorf("%w: %+v", errHalf, s)
					}
					return err
				})
			})
		}},
		{name: "console", op: "console", setup: nothing, run: func(c *cell) error {
			return again(func() error {
				return c.call(ctx, "console", func(ctx context.Context) error { return typed(ctx, c.proxy.URL()) })
			})
		}},
	}
}

// typed opens a console and runs one statement in it.
func typed(ctx context.Context, url string) error {
	c, err := console.Open(ctx, url, time.Minute)
	if err != nil {
		return err
	}
	defer c.Close()
	var got strings.Builder
	n, err := c.Query(ctx, "SELECT n FROM generate_series(1, 3) AS n", console.Sink{
		Columns: func([]console.Column) error { return nil },
		Row:     func(fields [][]byte) error { got.Write(fields[0]); return nil },
	})
	if err == nil && (n != 3 || got.String() != "123") {
		return fmt.Errorf("%w: %d rows, %s", errHalf, n, got.String())
	}
	return err
}
