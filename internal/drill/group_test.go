package drill

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"amends/internal/broker"
)

// SC22: two workers, rebalances in the middle of batches, one of them killed by SIGKILL, ten times; the end is that of an
// undisturbed run. Under each group protocol, on Apache Kafka, whose session timeout for its own protocol is 6 s here too.
// Shows F11, I9.
func TestSC22KilledWorkers(t *testing.T) {
	t.Parallel()
	kills := size(t, killsEnv, 2, 1)
	rng := choices(t)
	for _, protocol := range broker.GroupProtocols() {
		t.Run("SC22 "+string(protocol), func(t *testing.T) { killedWorkers(t, protocol, rng, kills) })
	}
}

func killedWorkers(t *testing.T, protocol broker.GroupProtocol, rng *rand.Rand, kills int) {
	s := newSpace(t, shape{4, 2})
	flag := "-group-protocol " + string(protocol)
	workers := []*process{s.role("source", flag), s.role("source", flag)}
	rest := s.start("run -manifest pipeline.json -role relay,view")
	st := s.stream(rng.Uint64(), 200)
	s.moves("the first records", decided, 0)
	rebalances := 0
	var took []time.Duration
	for range kills {
		s.shared(workers[0], workers[1])
		time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
		i := rng.IntN(2)
		workers[i].Kill()
		began := time.Now()
		s.everyPartitionMoves("source")
		took = append(took, time.Since(began))
		before := s.number(ownerships)
		workers[i] = s.role("source", flag)
		third := s.role("source", flag) // it comes and goes: two more rebalances
		s.moves("a rebalance", ownerships, before)
		third.stop()
		rebalances += 3
	}
	s.protocolIs(protocol)
	st.stop()
	found := s.check(st)
	s.undisturbed()
	for _, p := range append(workers, rest) {
		p.stop()
	}
	if found.duplicates != 0 {
		t.Errorf("%d duplicates at the topic", found.duplicates)
	}
	figure(t, "takeover of a killed worker: %s", spread(took))
	figure(t, "%d kills and at least %d rebalances, %d epochs; %v", kills, rebalances, s.number(ownerships), found)
}

// protocolIs checks what the broker says of the group: an unknown protocol would have been joined as another.
func (s *space) protocolIs(want broker.GroupProtocol) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	group := "amends." + s.name + ".source"
	groups, err := s.admin.ListGroupsByType(ctx, []string{"classic", "consumer"})
	if err != nil {
		s.t.Fatal(err)
	}
	kind := groups[group].GroupType
	wantKind := map[broker.GroupProtocol]string{broker.Eager: "classic", broker.Cooperative: "classic", broker.Consumer: "consumer"}[want]
	if kind != wantKind {
		s.t.Errorf("the group is of type %q, want %q", kind, wantKind)
	}
	if wantKind == "classic" {
		s.balancerIs(ctx, group, map[broker.GroupProtocol]string{broker.Eager: "range", broker.Cooperative: "cooperative-sticky"}[want])
	}
}

func (s *space) balancerIs(ctx context.Context, group, want string) {
	s.t.Helper()
	var described kadm.DescribedGroup
	await(s.t, "the group is stable", func() bool {
		all, err := s.admin.DescribeGroups(ctx, group)
		if err != nil {
			s.t.Fatal(err)
		}
		described = all[group]
		return described.State == "Stable"
	})
	if described.Protocol != want {
		s.t.Errorf("the group's balancer is %q, want %q", described.Protocol, want)
	}
}
