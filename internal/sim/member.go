package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/worker"
)

// member is one worker process in the source group: worker.Lifecycle with its partitions, driven by hand.
type member struct {
	actor
	life  *worker.Lifecycle
	err   error
	seats []seat // by partition
}

// seat is what a member has of one partition.
type seat struct {
	part    *worker.Partition // nil while none runs
	at      ledger.Frontier   // of its fetches
	readyAt time.Duration
	fetches bool // assigned, and its position known
	held    bool
	idle    bool // there is something to do at readyAt, or when there are records
	done    bool
	rejoin  bool // assigned, and its positions are to be asked for again
	seek    bool // its partition claimed again, and the fetches must go back
	lost    bool // given away, and it does not know yet
	revoked bool // may not commit
}

// newMember starts a worker process. Nothing is assigned to it yet.
func (w *World) newMember(id int) *member {
	m := &member{actor: actor{w: w, id: id}, seats: make([]seat, len(w.books))}
	cache := int64(0)
	if w.tiny {
		cache = 1
	}
	m.life = worker.NewLifecycle(context.Background(), &worker.Options{Store: port{&m.actor}, Topics: client{&m.actor}, Manifest: w.history.Manifest, CacheBytes: cache},
		&worker.Drive{
			Start: m.start, Stop: m.stop, Fail: m.fail, Wake: m.wake,
			Hold:  func(p ledger.Partition, held bool) { m.seats[p].held = held },
			Clock: w.clock, Pause: w.pause, SnapshotRows: w.snapshotRows,
		})
	return m
}

func (m *member) start(part *worker.Partition) {
	s := &m.seats[part.ID()]
	s.part, s.readyAt, s.idle, s.done, s.revoked = part, 0, false, false, false
}

// wake makes the next poll due: a partition claimed again and says there where it must be sought.
func (m *member) wake() {
	for p := range m.seats {
		m.seats[p].seek = true
	}
}

// stop does what worker.Run does: the steps in progress may finish within a grace, and are then cut off.
func (m *member) stop(parts []*worker.Partition) {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b *worker.Partition) int { return int(a.ID() - b.ID()) })
	for _, part := range parts {
		part.Stop()
	}
	for _, part := range parts {
		s := &m.seats[part.ID()]
		for range stopSteps {
			if s.part != part || s.done {
				break
			}
			m.step(part.ID())
		}
		s.part, s.fetches = nil, false
	}
}

// stopSteps is how many steps of a stopped partition the grace allows.
const stopSteps = 6

// fail ends the process after the present event.
func (m *member) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// step makes one step of a partition.
func (m *member) step(p ledger.Partition) {
	s := &m.seats[p]
	progress, err := s.part.Step(context.Background())
	if err != nil {
		s.done = true
		m.fail(err)
		return
	}
	s.readyAt, s.idle, s.done = m.w.now+progress.Wait, progress.Idle, progress.Done
	if f, b := s.part.Frontier(), m.w.books[p]; f > b.Highest {
		m.w.violate("I21", "partition %d: the worker counts %d as committed, durable is %d", p, f, b.Highest)
	}
}

// assign gives the member a partition: the callbacks of the group, in their order, with others' doings between them.
func (m *member) assign(p ledger.Partition) {
	ctx, s := context.Background(), &m.seats[p]
	ps := []ledger.Partition{p}
	s.rejoin, s.fetches = false, false
	m.life.Assigned(ctx, ps)
	if m.w.trouble(2) == 1 {
		m.w.interleave(&m.actor, row{partition: p})
	}
	at, err := m.life.Positions(ctx, ps)
	if err != nil {
		s.rejoin, s.readyAt = true, m.w.now+100*time.Millisecond
		return
	}
	s.at, s.fetches, s.held = at[p], true, false
	m.w.say("starts at", int64(m.id), int64(s.at))
}

// revoke takes a partition away and tells the member.
func (m *member) revoke(p ledger.Partition, lost bool) {
	s, ps := &m.seats[p], []ledger.Partition{p}
	s.lost, s.rejoin, s.fetches = false, false, false
	if lost {
		m.life.Lost(context.Background(), ps)
	} else {
		m.life.Revoked(context.Background(), ps)
	}
	s.revoked = true
}

// poll fetches what there is of every partition and hands it on, as worker.Run does.
func (m *member) poll() {
	var fetched []broker.Fetched
	err := client{&m.actor}.look("poll")
	for p := range m.seats {
		s := &m.seats[p]
		if err != nil || !s.fetches || s.held {
			continue
		}
		log := m.w.source.Log(ledger.Partition(p))
		if err = identify(m.w.source, m.w.history.Manifest.Config.SourceIncarnation); err != nil {
			break
		}
		records, next := log.Read(ledger.Partition(p), s.at, m.w.cut(int(log.Stable()-s.at)))
		if next > s.at {
			fetched = append(fetched, broker.Fetched{Partition: ledger.Partition(p), Records: records, From: s.at, Next: next})
			s.at = next
			if s.idle {
				s.idle, s.readyAt = false, 0
			}
		}
	}
	dispatched := m.life.Dispatch(fetched, func(p ledger.Partition, at ledger.Frontier) { m.seats[p].at = at })
	for p := range m.seats {
		m.seats[p].seek = false
	}
	var identity *broker.IdentityError
	switch {
	case dispatched != nil:
		m.fail(dispatched)
	case errors.As(err, &identity):
		m.fail(err)
	}
}

// end is the end of a process whose role failed or was asked to stop: as worker.Run, partitions first, then the group.
func (m *member) end() {
	m.life.Close()
	m.retired = true
	for p, owner := range m.w.owners {
		if owner == m {
			m.w.owners[p] = nil
		}
	}
	if m.err == nil {
		return
	}
	m.w.ended("worker", m.err)
	if errors.Is(m.err, store.ErrFence) && !m.w.lossy {
		for p := range m.seats {
			if m.w.claimer[p] != &m.actor {
				return
			}
		}
		m.w.violate("I21", "worker %d retires as fenced and nobody else has claimed: %v", m.id, m.err)
	}
}
