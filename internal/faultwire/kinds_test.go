package faultwire_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/delivery"
	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres"
)

// kind is one type of transaction: the nth call of op in a run of a production role.
type kind struct {
	name string
	op   string
	nth  int
	// setup brings the namespace to where the run begins, directly.
	setup func(*cell)
	// run is the role from there to its end, through the proxy. With a fault it must end as without.
	run func(*cell) error
	// state shows what is stored; nil for the whole namespace.
	state func(*cell) string
	// alone: a case has a database alone.
	alone bool
	// sparse: it costs so much that only a full run tries every action on every statement.
	sparse bool
	// mild: the call may succeed although one of its statements failed, and not only a ROLLBACK.
	mild bool
	// refused: the server refuses the undisturbed call too, and the row is freed after it.
	refused bool
	// volatile: what is left at the end depends on what failed.
	volatile bool
	// looks: it changes nothing, so that all cases look at one namespace.
	looks bool
	// unbound and absent leave out the binding and the namespace.
	unbound bool
	absent  bool
	// unmigrated: the schema is not there.
	unmigrated bool
}

// number returns the number of the cell's namespace.
func (c *cell) number() (n int) {
	_, err := fmt.Sscanf(c.cfg.Namespace, "n%d", &n)
	must(err)
	return n
}

func (c *cell) worked(end ledger.Frontier) { must(work(c.cfg, c.direct, example, end)) }

// published prepares a relay that has published before.
func published(c *cell) {
	c.worked(4)
	must(c.relay(c.direct))
	c.worked(5)
}

// again tries a call as an operator would run a command again: while the database was away, and once more after an unknown outcome.
func again(f func() error) error {
	var err error
	for range 4 {
		if err = f(); err == nil || classOf(err) != unavailable && classOf(err) != unknown {
			return err
		}
	}
	return err
}

// kinds lists every type of transaction that store/postgres sends.
func kinds() []*kind {
	ctx := context.Background()
	nothing := func(*cell) {}
	worker := func(c *cell) error { return work(c.cfg, c.ns, example, 7) }
	relay := func(c *cell) error { return c.relay(c.ns) }
	return slices.Concat([]*kind{
		{name: "claim", op: "claim", setup: nothing, run: worker},
		{name: "claim of a blocked row", op: "claim", setup: silentHolder, run: worker, mild: true},
		{name: "position", op: "observe", setup: nothing, run: worker},
		{name: "load", op: "load", setup: nothing, run: worker},
		{name: "load of a known key", op: "load", setup: func(c *cell) { c.worked(4) }, run: worker},
		{name: "commit with keys and quarantine", op: "commit", setup: nothing, run: worker},
		{name: "commit with outputs", op: "commit", nth: 1, setup: nothing, run: worker},
		{name: "commit of a blocked row", op: "commit", setup: func(c *cell) { c.worked(4) },
			run: func(c *cell) error { return work(c.cfg, &blocking{probe: c.ns}, example, 7) }, mild: true, refused: true, sparse: true},
		{name: "move without a decision", op: "commit", nth: 2, setup: nothing, run: worker},
		{name: "save snapshots", op: "save", setup: nothing, run: worker},
		{name: "bind", op: "bind", setup: nothing, run: (*cell).bind, unbound: true, alone: true},
		{name: "read binding", op: "binding", setup: nothing, run: (*cell).bind, unbound: true, alone: true},
		{name: "acquire relay", op: "acquire", setup: published, run: relay},
		{name: "relay position", op: "relay position", setup: published, run: relay},
		{name: "last receipt", op: "last receipt", setup: published, run: relay},
		{name: "outbox of a receipt", op: "outbox", setup: published, run: relay},
		{name: "pending", op: "pending", setup: published, run: relay},
		{name: "acknowledge", op: "acknowledge", setup: published, run: relay},
		{name: "acknowledge again", op: "acknowledge", setup: published, run: acknowledgeAgain},
		{name: "release", op: "release", setup: published, run: releaseAndTake, volatile: true},
		{name: "renew", op: "renew", setup: nothing, run: renew},
		{name: "acquire view", op: "acquire", setup: published, run: views},
		{name: "view position", op: "view position", setup: published, run: views},
		{name: "view page of new rows", op: "apply", setup: published, run: views},
		{name: "view page that replaces rows", op: "apply", nth: 1, setup: published, run: views},
		{name: "view page of a repetition", op: "apply", nth: 2, setup: published, run: views},
		{name: "view page that stops", op: "apply", nth: 3, setup: published, run: views},
		{name: "large view page of new rows", op: "apply", setup: nothing, run: largeViews},
		{name: "large view page that replaces rows", op: "apply", nth: 1, setup: nothing, run: largeViews},
		{name: "large view page that replaces few of the rows in reach", op: "apply", nth: 3, setup: nothing, run: unblockedViews},
		{name: "view rows", op: "view rows", setup: published, run: views},
		{name: "init", op: "init", setup: nothing, run: initialise, absent: true, alone: true},
		{name: "migrate", op: "migrate", setup: nothing, run: migrate, absent: true, alone: true, unmigrated: true, sparse: true, state: schemaState},
		{name: "migration status", op: "status", setup: nothing, run: func(c *cell) error {
			return again(func() error {
				return c.call(ctx, "status", func(ctx context.Context) error { return c.db.CheckSchema(ctx) })
			})
		}},
		{name: "record verification", op: "record", setup: nothing, run: record, volatile: true},
		{name: "last verification", op: "last", setup: nothing, run: func(c *cell) error {
			return again(func() error {
				return c.call(ctx, "last", func(ctx context.Context) error { _, err := c.ns.LastVerification(ctx); return err })
			})
		}},
		{name: "snapshot", op: "snapshot", setup: published, run: snapshot},
		{name: "guard", op: "guard", setup: nothing, run: guard},
		{name: "open", op: "open", setup: nothing, run: func(c *cell) error {
			return again(func() error {
				return c.call(ctx, "open", func(ctx context.Context) error {
					db, err := postgres.Open(ctx, postgres.Options{URL: c.proxy.URL(), AllowFsyncOff: true})
					if err == nil {
						db.Close()
					}
					return err
				})
			})
		}},
	}, upkeepKinds(), readKinds(), serverKinds())
}

// silentHolder holds the partition row in a session that says nothing more.
func silentHolder(c *cell) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.url)
	must(err)
	c.ends = append(c.ends, func() { _ = conn.Close(ctx) })
	_, err = conn.Exec(ctx, "BEGIN")
	must(err)
	_, err = conn.Exec(ctx, "SELECT FROM amends.partitions JOIN amends.namespaces USING (namespace_id) WHERE namespace = $1 FOR UPDATE", c.cfg.Namespace)
	must(err)
}

// blocking is a worker's store whose first commit meets a row that somebody holds until it has failed.
type blocking struct {
	*probe
	done bool
}

func (b *blocking) Commit(ctx context.Context, t store.Token, batch *ledger.Batch) error {
	if b.done {
		return b.probe.Commit(ctx, t, batch)
	}
	b.done = true
	silentHolder(b.c)
	err := b.probe.Commit(ctx, t, batch)
	b.c.ends[len(b.c.ends)-1]()
	return err
}

// acknowledgeAgain repeats the last receipt, which is idempotent.
func acknowledgeAgain(c *cell) error {
	ctx := context.Background()
	l, err := c.direct.AcquireService(ctx, store.Relay, 0, "holder", time.Hour)
	must(err)
	r, err := c.direct.LastReceipt(ctx, 0)
	must(err)
	return again(func() error { return c.ns.Acknowledge(ctx, l, *r) })
}

// releaseAndTake gives a lease up and lets another holder take it, at the latest when it has expired.
func releaseAndTake(c *cell) error {
	ctx := context.Background()
	l, err := c.direct.AcquireService(ctx, store.Relay, 0, "holder", time.Hour)
	must(err)
	released := c.ns.ReleaseService(ctx, l) == nil
	_, err = c.direct.AcquireService(ctx, store.Relay, 0, "other", time.Hour)
	if released || !errors.Is(err, store.ErrServiceBusy) {
		return err
	}
	_, err = c.conn.Exec(ctx, `UPDATE amends.leases SET expires_at = clock_timestamp() FROM amends.namespaces AS n
		WHERE n.namespace_id = leases.namespace_id AND namespace = $1`, c.cfg.Namespace) // an hour later
	must(err)
	_, err = c.direct.AcquireService(ctx, store.Relay, 0, "other", time.Hour)
	return err
}

// renew holds a lease until it was renewed twice after the target; it must not be lost.
func renew(c *cell) error {
	k := c.quickKeeper()
	return k.Hold(context.Background(), store.View, 0, func(ctx context.Context, _ store.Lease) error {
		for !c.done.Load() || c.succeeded("renew") < 2 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(5 * time.Millisecond):
			}
		}
		return nil
	})
}

// views materializes everything there is, then a correction, a repetition, and a record that stops the partition.
func views(c *cell) error {
	c.topic.see(3) // whole repairs of the first records
	if err := c.view(c.ns); err != nil {
		return fmt.Errorf("first page: %w", err)
	}
	c.topic.see(0)
	must(c.relay(c.direct))
	if err := c.view(c.ns); err != nil {
		return fmt.Errorf("correction: %w", err)
	}
	first := c.topic.from(0)[0]
	c.topic.write(first.Key, first.Value)
	if err := c.view(c.ns); err != nil {
		return fmt.Errorf("repetition: %w", err)
	}
	c.topic.write(first.Key, []byte("no envelope"))
	var stopped *delivery.StoppedError
	if err := c.view(c.ns); !errors.As(err, &stopped) {
		return fmt.Errorf("violation: %w", err)
	}
	return nil
}

// largeViews materializes a correction of many days.
func largeViews(c *cell) error { return eachView(c, deep()) }

// unblockedViews materializes a block, and the correction of many days that ends it.
func unblockedViews(c *cell) error { return eachView(c, unblocked()) }

// eachView decides, publishes and materializes one batch after the other.
func eachView(c *cell, batches []batch) error {
	for _, b := range batches {
		end := b.next
		must(work(c.cfg, c.direct, batches, end))
		must(c.relay(c.direct))
		if err := c.view(c.ns); err != nil {
			return fmt.Errorf("page up to %d: %w", end, err)
		}
	}
	return nil
}

func initialise(c *cell) error {
	ctx := context.Background()
	return again(func() error {
		return c.call(ctx, "init", func(ctx context.Context) error {
			_, err := c.db.Init(ctx, c.cfg, "source")
			return err
		})
	})
}

func migrate(c *cell) error {
	ctx := context.Background()
	err := again(func() error { return c.call(ctx, "migrate", c.db.Migrate) })
	if err == nil {
		err = c.database.db.CheckSchema(ctx)
	}
	return err
}

// schemaState shows the migrations and how much they made.
func schemaState(c *cell) string {
	ctx := context.Background()
	var objects, ledgers int
	must(c.conn.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE relname = 'schema_migrations')
		FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'amends')`).Scan(&objects, &ledgers))
	applied := 0
	if ledgers > 0 {
		must(c.conn.QueryRow(ctx, "SELECT count(*) FROM amends.schema_migrations").Scan(&applied))
	}
	return fmt.Sprintf("%d objects, %d migrations", objects, applied)
}

// record keeps one verification. Nobody resolves its outcome: a repetition is another run's.
func record(c *cell) error {
	ctx := context.Background()
	v := store.Verification{Started: time.Unix(0, 0), Status: "PASS", Boundary: []store.Cut{}}
	call := func() error {
		return c.call(ctx, "record", func(ctx context.Context) error { return c.ns.RecordVerification(ctx, v) })
	}
	err := call()
	if classOf(err) == unavailable {
		err = call()
	}
	if classOf(err) == unknown {
		return nil
	}
	return err
}

// snapshot reads everything.
func snapshot(c *cell) error {
	ctx := context.Background()
	return again(func() error {
		return c.call(ctx, "snapshot", func(ctx context.Context) error {
			return c.ns.Snapshot(ctx, func(s store.Snapshot) error {
				if _, err := s.Partitions(ctx); err != nil {
					return err
				}
				if err := s.Journal(ctx, 0, func(*ledger.Decision) error { return nil }); err != nil {
					return err
				}
				if err := s.ViewRows(ctx, 0, func(store.ViewRow) error { return nil }); err != nil {
					return err
				}
				if _, err := s.Violations(ctx); err != nil {
					return err
				}
				_, err := s.Receipts(ctx, 0)
				return err
			})
		})
	})
}

// guard takes the loader's guard, at the latest when the server has seen the end of a lost attempt, and gives it up.
func guard(c *cell) error {
	ctx := context.Background()
	for range 4_500 {
		var g *postgres.Guard
		err := c.call(ctx, "guard", func(ctx context.Context) (err error) {
			g, err = c.db.GuardSource(ctx, c.cfg.SourceIncarnation)
			return err
		})
		switch {
		case err == nil:
			if _, err := c.database.db.GuardSource(ctx, c.cfg.SourceIncarnation); !errors.Is(err, store.ErrServiceBusy) {
				return fmt.Errorf("a second guard: %w", err)
			}
			return g.Release(ctx)
		case !errors.Is(err, store.ErrServiceBusy) && classOf(err) != unavailable:
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("the guard was never free again")
}
