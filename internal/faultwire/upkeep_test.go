package faultwire_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
	"amends/internal/store/postgres/upkeep"
)

// upkeepKinds are the writes beside the data path. Nobody but their callers resolves an unknown outcome: an audit writes
// the same again, a rebuild reads its record back.
func upkeepKinds() []*kind {
	audit := &kind{name: "record audit", op: "record audit", setup: audited, run: func(c *cell) error {
		return again(func() error {
			return c.upkeep("record audit", func(ctx context.Context, u *upkeep.Upkeep) error {
				return u.RecordAudit(ctx, []store.AuditCycle{secondCycle()})
			})
		})
	}}
	first := *audit
	first.name, first.setup, first.sparse = "record the first audit", func(*cell) {}, true
	all := []*kind{audit, &first,
		{name: "save audit state", op: "save audit", setup: audited, run: func(c *cell) error {
			return again(func() error {
				return c.upkeep("save audit", func(ctx context.Context, u *upkeep.Upkeep) error {
					return saveAudit(ctx, u, 7, "the", "second", "state")
				})
			})
		}},
		{name: "trim verifications", op: "trim", sparse: true, setup: overfull, run: func(c *cell) error {
			return again(func() error {
				return c.upkeep("trim", func(ctx context.Context, u *upkeep.Upkeep) error { return u.TrimVerifications(ctx) })
			})
		}},
	}
	rebuilds := []struct {
		name  string
		steps int // that are behind it
	}{{"begin rebuild", 0}, {"name topic of rebuild", 1}, {"record topic of rebuild", 2}, {"advance rebuild", 3}, {"end rebuild", 4}}
	for _, r := range rebuilds {
		all = append(all, &kind{name: r.name, op: "rebuild", state: rebuildState, sparse: r.name == "end rebuild",
			setup: func(c *cell) {
				for _, s := range rebuildSteps(c)[:r.steps] {
					changed, err := s.change(context.Background(), c.direct.Upkeep())
					must(err)
					ensure(changed && s.wanted(c.rebuild()), "a step of the setup changed nothing")
				}
			},
			run: func(c *cell) error { return c.step(rebuildSteps(c)[r.steps]) }})
	}
	return all
}

// upkeep makes one call through the proxy.
func (c *cell) upkeep(op string, f func(context.Context, *upkeep.Upkeep) error) error {
	return c.call(context.Background(), op, func(ctx context.Context) error { return f(ctx, c.ns.Upkeep()) })
}

// audited leaves a cycle and a saved state of two pieces.
func audited(c *cell) {
	ctx := context.Background()
	must(c.direct.Upkeep().RecordAudit(ctx, []store.AuditCycle{{Status: "DRIFT", Detail: "a row differs", Frontier: 4, Output: 3, Sequence: 3, Cause: 3, Differences: 1, Full: true}}))
	must(saveAudit(ctx, c.direct.Upkeep(), 4, "first", "state"))
}

// overfull leaves two verifications of audits more than are kept.
func overfull(c *cell) {
	_, err := c.conn.Exec(context.Background(), `INSERT INTO amends.verifications (started_at, keys, outputs, differences, namespace_id, quiesced, deep, audit, status, boundary, detail)
		SELECT '2026-01-01', n, 0, 1, (SELECT namespace_id FROM amends.namespaces WHERE namespace = $1), false, true, true, 'DRIFT', '[]', 'a row differs'
		FROM generate_series(1, $2::bigint) AS n`, c.cfg.Namespace, store.MaxAuditRows+2)
	must(err)
}

// secondCycle finds everything equal.
func secondCycle() store.AuditCycle {
	return store.AuditCycle{Status: "PASS", Frontier: 5, Output: 4, Sequence: 4, Cause: 4, Verified: true}
}

func saveAudit(ctx context.Context, u *upkeep.Upkeep, at ledger.Frontier, pieces ...string) error {
	chunks := make([][]byte, len(pieces))
	for i, p := range pieces {
		chunks[i] = []byte(p)
	}
	return u.SaveAudit(ctx, 0, store.SavedState{Frontier: at, Format: 1, Chunks: int32(len(chunks)), Checksum: sha256.Sum256(bytes.Join(chunks, nil))}, chunks)
}

// rebuildStep is a change of a rebuild's record, and how the record tells that it took place.
type rebuildStep struct {
	change func(context.Context, *upkeep.Upkeep) (bool, error)
	wanted func(*store.Rebuild) bool
}

// rebuildSteps are those of a rebuild that gave up one topic, in order.
func rebuildSteps(c *cell) []rebuildStep {
	into := rebuilt(c)
	cfg := *c.cfg
	cfg.Namespace = into
	made, err := manifest.New(cfg)
	must(err)
	incarnation := fmt.Sprintf("kafka:%032x", int64(c.number())+1<<44)
	advance := func(from, to store.RebuildPhase, status string) rebuildStep {
		return rebuildStep{func(ctx context.Context, u *upkeep.Upkeep) (bool, error) {
			return u.AdvanceRebuild(ctx, into, from, to, status)
		}, func(r *store.Rebuild) bool { return r != nil && r.Phase == to && r.Status == status }}
	}
	return []rebuildStep{
		{func(ctx context.Context, u *upkeep.Upkeep) (bool, error) {
			return u.BeginRebuild(ctx, into, made.Digest(), made.Canonical(), "taken")
		}, func(r *store.Rebuild) bool {
			return r != nil && r.Origin == c.cfg.Namespace && r.Topic == "taken" && r.Phase == store.RebuildCreate
		}},
		{func(ctx context.Context, u *upkeep.Upkeep) (bool, error) {
			return u.NameRebuildTopic(ctx, into, "free")
		}, func(r *store.Rebuild) bool { return r != nil && r.Topic == "free" && r.Phase == store.RebuildCreate }},
		{func(ctx context.Context, u *upkeep.Upkeep) (bool, error) {
			return u.RecordRebuildTopic(ctx, into, "free", incarnation)
		}, func(r *store.Rebuild) bool {
			return r != nil && r.Incarnation == incarnation && r.Phase == store.RebuildBind
		}},
		advance(store.RebuildBind, store.RebuildVerify, ""),
		advance(store.RebuildVerify, store.RebuildDone, "BLOCKED"),
	}
}

// step takes a step by the rule of a rebuild: after an unknown outcome the record tells, and a change that it does not
// show is asked for again, which waits for the first. What the change itself reports must fit the record.
func (c *cell) step(s rebuildStep) error {
	for range 4 {
		changed := false
		err := c.upkeep("rebuild", func(ctx context.Context, u *upkeep.Upkeep) (err error) {
			changed, err = s.change(ctx, u)
			return err
		})
		took := s.wanted(c.rebuild())
		switch class := classOf(err); {
		case err == nil && changed && !took:
			return errors.New("it reports a change that is not there")
		case class == unavailable && took:
			return fmt.Errorf("it took place and nobody may conclude so from: %w", err)
		case took:
			return nil
		case class != unavailable && class != unknown:
			return fmt.Errorf("it did not take place: %w", err)
		}
	}
	return errors.New("not settled after four attempts")
}

// rebuild reads the record directly.
func (c *cell) rebuild() (made *store.Rebuild) {
	ctx := context.Background()
	must(c.direct.Look(ctx, func(r *reader.Snapshot) (err error) {
		made, _, err = r.Rebuild(ctx, rebuilt(c))
		return err
	}))
	return made
}

// rebuilt names the namespace that a rebuild makes.
func rebuilt(c *cell) string { return c.cfg.Namespace + "-rebuilt" }

// rebuildState shows the origin and what is made of it.
func rebuildState(c *cell) string {
	return c.dump(c.cfg.Namespace, true) + "\nrebuilt:\n" + c.dump(rebuilt(c), true)
}
