package upkeep

import (
	"context"
	"fmt"

	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// BeginRebuild makes a namespace with the source, partitions and scale of this one, and the record of its origin, in one
// transaction (S11). digest and config are those of its configuration. It reports whether it did: a namespace of that
// name, whoever made it, is left as it is.
func (u *Upkeep) BeginRebuild(ctx context.Context, namespace string, digest [32]byte, config []byte, topic string) (made bool, err error) {
	err = u.rebuild(ctx, "begin rebuild of "+namespace, func(ctx context.Context, s *session.Session) (int64, error) {
		return s.Exec(ctx, "begin_rebuild", u.namespace, namespace, digest[:], config, topic)
	}, &made)
	return made, err
}

// NameRebuildTopic names another output topic for a rebuild that has recorded none as made. It reports whether the
// rebuild was at that phase.
func (u *Upkeep) NameRebuildTopic(ctx context.Context, namespace, topic string) (named bool, err error) {
	err = u.rebuild(ctx, "name topic of rebuild "+namespace, func(ctx context.Context, s *session.Session) (int64, error) {
		return s.Exec(ctx, "name_rebuild_topic", u.namespace, namespace, topic)
	}, &named)
	return named, err
}

// RecordRebuildTopic records the incarnation of the topic that this rebuild made, which ends phase create. It reports
// whether the rebuild was at that phase, with that topic.
func (u *Upkeep) RecordRebuildTopic(ctx context.Context, namespace, topic, incarnation string) (recorded bool, err error) {
	err = u.rebuild(ctx, "record topic of rebuild "+namespace, func(ctx context.Context, s *session.Session) (int64, error) {
		return s.Exec(ctx, "record_rebuild_topic", u.namespace, namespace, topic, incarnation)
	}, &recorded)
	return recorded, err
}

// AdvanceRebuild moves a rebuild from one phase to the next. status is "" unless the next one is store.RebuildDone. It
// reports whether the rebuild was at that phase.
func (u *Upkeep) AdvanceRebuild(ctx context.Context, namespace string, from, to store.RebuildPhase, status string) (advanced bool, err error) {
	var verdict *string
	if status != "" {
		verdict = &status
	}
	err = u.rebuild(ctx, fmt.Sprintf("advance rebuild of %s to %s", namespace, to), func(ctx context.Context, s *session.Session) (int64, error) {
		return s.Exec(ctx, "advance_rebuild", u.namespace, namespace, string(from), string(to), verdict)
	}, &advanced)
	return advanced, err
}

// rebuild runs one statement in a transaction of its own and says whether it changed a row.
func (u *Upkeep) rebuild(ctx context.Context, verb string, change func(context.Context, *session.Session) (int64, error), changed *bool) error {
	return u.pool.Transact(ctx, verb, func(ctx context.Context, s *session.Session) error {
		n, err := change(ctx, s)
		*changed = n == 1
		return err
	})
}
