package broker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/ledger"
)

// Member is the owner of a Group's partitions; the group calls it, never two calls at a time, and never while a Poll
// is unreleased. Partitions are in order.
type Member interface {
	// Assigned tells of new partitions, none if the group has none to give: the owner claims them before it returns. ctx lives as
	// long as the client and proves no ownership.
	Assigned(ctx context.Context, partitions []ledger.Partition)
	// Positions returns where to read each partition from; a partition left out is not read. An error ends the
	// session, and the group is joined again after a pause; it must not be context.Canceled.
	Positions(ctx context.Context, partitions []ledger.Partition) (map[ledger.Partition]ledger.Frontier, error)
	// Revoked takes partitions away: after it returns the owner issues no commit for them.
	Revoked(ctx context.Context, partitions []ledger.Partition)
	// Lost is Revoked after the group has already given them to somebody else, or the session ended: with none of them too.
	Lost(ctx context.Context, partitions []ledger.Partition)
}

// GroupProtocol is how a group shares out its partitions. Members of one group need the same one.
type GroupProtocol string

// The group protocols.
const (
	// Eager gives every partition up at each rebalance and assigns ranges anew.
	Eager GroupProtocol = "eager"
	// Cooperative gives up only partitions that move.
	Cooperative GroupProtocol = "cooperative"
	// Consumer lets the broker assign (KIP-848, Apache Kafka 4.0 or newer). The broker's session timeout and heartbeat
	// apply. A broker without it is joined eagerly.
	Consumer GroupProtocol = "consumer"
)

// GroupProtocols lists them, the default first.
func GroupProtocols() []GroupProtocol { return []GroupProtocol{Eager, Cooperative, Consumer} }

// GroupOptions say which group to join and as what. Zero durations mean this package's limits.
type GroupOptions struct {
	Member           Member
	Group            string
	Topic            string
	Incarnation      string
	Options          Options
	SessionTimeout   time.Duration
	Heartbeat        time.Duration
	RebalanceTimeout time.Duration
	// Protocol is Eager unless given.
	Protocol GroupProtocol
}

// Group is a member of the consumer group of one topic. It commits no offsets: positions come from its Member. Poll,
// AllowRebalance and Seek belong to one goroutine.
type Group struct {
	client      *kgo.Client
	member      Member
	opts        Options
	at          positions
	abandon     context.CancelFunc // ends whatever the client waits for
	topic       string
	incarnation string
	mu          sync.Mutex // guards at; a leaf, never held while the client or the member is called
}

// NewGroup joins the group in the background.
func NewGroup(o GroupOptions) (*Group, error) {
	base, err := o.Options.base()
	if err != nil {
		return nil, err
	}
	g := &Group{member: o.Member, opts: o.Options, topic: o.Topic, incarnation: o.Incarnation, at: positions{}}
	protocol, err := o.Protocol.options()
	if err != nil {
		return nil, err
	}
	opts := append(append(base, o.Options.consuming()...), protocol...)
	var ctx context.Context
	ctx, g.abandon = context.WithCancel(context.Background())
	opts = append(opts, kgo.WithContext(ctx),
		kgo.ConsumerGroup(o.Group), kgo.ConsumeTopics(o.Topic),
		kgo.SessionTimeout(or(o.SessionTimeout, SessionTimeout)),
		kgo.HeartbeatInterval(or(o.Heartbeat, Heartbeat)),
		kgo.RebalanceTimeout(or(o.RebalanceTimeout, RebalanceTimeout)),
		kgo.BlockRebalanceOnPoll(), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(g.assigned), kgo.AdjustFetchOffsetsFn(g.adjust),
		kgo.OnPartitionsRevoked(g.gone(o.Member.Revoked, false)), kgo.OnPartitionsLost(g.gone(o.Member.Lost, true)),
	)
	if g.client, err = kgo.NewClient(opts...); err != nil {
		g.abandon()
		return nil, fmt.Errorf("open group %s: %w", o.Group, err)
	}
	return g, nil
}

// options returns what the client needs for a protocol.
func (p GroupProtocol) options() ([]kgo.Opt, error) {
	switch p {
	case Eager, "":
		return []kgo.Opt{kgo.Balancers(kgo.RangeBalancer())}, nil
	case Cooperative:
		return []kgo.Opt{kgo.Balancers(kgo.CooperativeStickyBalancer())}, nil
	case Consumer:
		return []kgo.Opt{kgo.Balancers(kgo.RangeBalancer()), kgo.ServerSideBalancer()}, nil
	}
	return nil, fmt.Errorf("open group: unknown group protocol %q", string(p))
}

func (g *Group) assigned(ctx context.Context, _ *kgo.Client, m map[string][]int32) {
	g.member.Assigned(ctx, g.partitions(m))
}

func (g *Group) gone(tell func(context.Context, []ledger.Partition), none bool) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(ctx context.Context, _ *kgo.Client, m map[string][]int32) {
		ps := g.partitions(m)
		if len(ps) == 0 && !none {
			return
		}
		tell(ctx, ps)
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, p := range ps {
			delete(g.at, p)
		}
	}
}

func (g *Group) adjust(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	ps := make([]ledger.Partition, 0, len(offsets[g.topic]))
	for p := range offsets[g.topic] {
		ps = append(ps, ledger.Partition(p))
	}
	slices.Sort(ps)
	if len(ps) == 0 {
		return offsets, nil
	}
	at, err := g.member.Positions(ctx, ps)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPositions, err)
	}
	out := make(map[int32]kgo.Offset, len(at))
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range ps {
		if f, ok := at[p]; ok {
			out[int32(p)] = kgo.NewOffset().At(int64(f)).WithEpoch(-1)
			g.at[p] = f
		}
	}
	return map[string]map[int32]kgo.Offset{g.topic: out}, nil
}

// errPositions marks a session that the member itself ended.
var errPositions = fmt.Errorf("%w by its member", ErrSession)

func (g *Group) partitions(m map[string][]int32) []ledger.Partition {
	var out []ledger.Partition
	for _, p := range m[g.topic] {
		out = append(out, ledger.Partition(p))
	}
	slices.Sort(out)
	return out
}

// Poll waits for records or markers and returns everything fetched of the assigned partitions; from then on no
// rebalance runs until AllowRebalance, which must follow every Poll, also one that returns an error. While the broker
// is away it waits. ErrSession: the group is being joined again, poll again.
func (g *Group) Poll(ctx context.Context) ([]Fetched, error) {
	fetches := g.client.PollFetches(ctx)
	g.mu.Lock()
	out, err := g.opts.collect(ctx, fetches, g.topic, g.incarnation, g.at)
	g.mu.Unlock()
	return out, named(ctx, g.client, err)
}

// AllowRebalance releases the last Poll: the owner has handed on what it returned.
func (g *Group) AllowRebalance() { g.client.AllowRebalance() }

// Seek continues partition p from position at; it is called between a Poll and its AllowRebalance.
func (g *Group) Seek(p ledger.Partition, at ledger.Frontier) {
	g.mu.Lock()
	_, mine := g.at[p]
	if mine {
		g.at[p] = at
	}
	g.mu.Unlock()
	if mine {
		g.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{g.topic: {int32(p): {Epoch: -1, Offset: int64(at)}}})
	}
}

// Hold stops fetching partition p, or goes on with it; what was fetched and not returned is fetched again. A partition stays held
// when it is given away and assigned again. It may be called from any goroutine.
func (g *Group) Hold(p ledger.Partition, held bool) {
	one := map[string][]int32{g.topic: {int32(p)}}
	if held {
		g.client.PauseFetchPartitions(one)
		return
	}
	g.client.ResumeFetchPartitions(one)
}

// Close leaves the group, which revokes what is still assigned, and closes the connections. ctx bounds the leaving: joining
// may wait for other members for as long as a rebalance takes, and the client ends nothing before that was answered.
func (g *Group) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, CloseTimeout)
	defer cancel()
	g.client.AllowRebalance()
	_ = g.client.LeaveGroupContext(ctx) // a broker that is away forgets the member by itself
	if ctx.Err() != nil {
		g.abandon()
	}
	defer g.abandon()
	g.client.CloseAllowingRebalance()
	// Closing leaves a second time, in a goroutine, and polls once more to drain: released, neither waits for the other.
	g.client.AllowRebalance()
}
