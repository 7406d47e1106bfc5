package broker

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"amends/internal/ledger"
)

// recorder is a member that reads from fixed positions and notes what it is told.
type recorder struct {
	at     map[ledger.Partition]ledger.Frontier
	fail   error
	events []string
	owned  map[ledger.Partition]bool
	mu     sync.Mutex
}

func newRecorder() *recorder {
	return &recorder{at: map[ledger.Partition]ledger.Frontier{}, owned: map[ledger.Partition]bool{}}
}

func (r *recorder) note(event string, ps []ledger.Partition, own bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
	for _, p := range ps {
		r.owned[p] = own
	}
}

func (r *recorder) Assigned(_ context.Context, ps []ledger.Partition) { r.note("assigned", ps, true) }
func (r *recorder) Revoked(_ context.Context, ps []ledger.Partition)  { r.note("revoked", ps, false) }
func (r *recorder) Lost(_ context.Context, ps []ledger.Partition)     { r.note("lost", ps, false) }

func (r *recorder) Positions(_ context.Context, ps []ledger.Partition) (map[ledger.Partition]ledger.Frontier, error) {
	r.note("positions", nil, true)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		err := r.fail
		r.fail = nil
		return nil, err
	}
	out := map[ledger.Partition]ledger.Frontier{}
	for _, p := range ps {
		out[p] = r.at[p]
	}
	return out, nil
}

func (r *recorder) owns() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, own := range r.owned {
		if own {
			n++
		}
	}
	return n
}

func joinGroup(t *testing.T, o Options, topic Topic, m Member) *Group {
	t.Helper()
	return joinBy(t, o, topic, m, "")
}

func joinBy(t *testing.T, o Options, topic Topic, m Member, protocol GroupProtocol) *Group {
	t.Helper()
	g, err := NewGroup(GroupOptions{Member: m, Protocol: protocol, Group: "amends." + topic.Name + ".source", Topic: topic.Name, Incarnation: topic.Incarnation, Options: o, Heartbeat: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGroupReadsFromItsMembersPositions(t *testing.T) {
	each(t, checkGroupReadsFromItsMembersPositions)
}

func checkGroupReadsFromItsMembersPositions(t *testing.T, o Options, name string) {
	topic := create(t, openAdmin(t, o), name, 2)
	publish(t, o, topic, 0, "a", "b", "c")
	publish(t, o, topic, 1, "d", "e")
	m := newRecorder()
	m.at[0], m.at[1] = 2, 0
	m.fail = errors.New("the database is away")
	g := joinGroup(t, o, topic, m)
	defer g.Close(bounded(t))
	got := map[ledger.Partition][]string{}
	for len(got[0])+len(got[1]) < 3 {
		fetched, err := g.Poll(bounded(t))
		for _, f := range fetched {
			got[f.Partition] = append(got[f.Partition], values(f.Records)...)
		}
		g.AllowRebalance()
		if err != nil && !errors.Is(err, ErrSession) {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(map[ledger.Partition][]string{0: {"2=c"}, 1: {"0=d", "1=e"}}, got); d != "" {
		t.Fatal(d)
	}
	m.mu.Lock()
	head := append([]string(nil), m.events[:2]...)
	m.mu.Unlock()
	if d := cmp.Diff([]string{"assigned", "positions"}, head); d != "" {
		t.Fatal(d)
	}
	// A seek back between Poll and AllowRebalance returns the records again.
	publish(t, o, topic, 0, "f")
	if _, err := g.Poll(bounded(t)); err != nil {
		t.Fatal(err)
	}
	g.Seek(0, 1)
	g.AllowRebalance()
	var f []Fetched
	for len(f) == 0 { // a poll may find nothing
		var err error
		f, err = g.Poll(bounded(t))
		g.AllowRebalance()
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(f) != 1 || f[0].From != 1 || !cmp.Equal(values(f[0].Records), []string{"1=b", "2=c", "3=f"}) {
		t.Fatalf("after the seek: %+v", f)
	}
}

func TestGroupHold(t *testing.T) { each(t, checkGroupHold) }

func checkGroupHold(t *testing.T, o Options, name string) {
	topic := create(t, openAdmin(t, o), name, 2)
	g := joinGroup(t, o, topic, newRecorder())
	defer g.Close(bounded(t))
	poll := func() []Fetched {
		for { // what a poll finds may be nothing, as where only a held partition has records
			f, err := g.Poll(bounded(t))
			g.AllowRebalance()
			if err != nil && !errors.Is(err, ErrSession) { // a coordinator that is not there yet is asked again
				t.Fatal(err)
			}
			if len(f) > 0 {
				return f
			}
		}
	}
	publish(t, o, topic, 0, "a")
	poll()
	g.Hold(0, true)
	publish(t, o, topic, 0, "b")
	publish(t, o, topic, 1, "c")
	if f := poll(); len(f) != 1 || f[0].Partition != 1 {
		t.Fatalf("while 0 is held: %+v", f)
	}
	g.Hold(0, false)
	if f := poll(); len(f) != 1 || f[0].Partition != 0 || f[0].From != 1 || f[0].Next != 2 {
		t.Fatalf("after the hold: %+v", f)
	}
}

// A second member takes over half of the partitions; the first is told before, and no poll is in progress then.
func TestGroupRebalances(t *testing.T) {
	for _, protocol := range GroupProtocols() {
		t.Run(string(protocol), func(t *testing.T) {
			each(t, func(t *testing.T, o Options, name string) { checkGroupRebalances(t, o, name, protocol) })
		})
	}
}

func TestGroupOfAnUnknownProtocolIsRefused(t *testing.T) {
	_, o := cluster(t)
	if _, err := NewGroup(GroupOptions{Member: newRecorder(), Group: "g", Topic: "t", Options: o, Protocol: "lazy"}); err == nil {
		t.Fatal("joined by an unknown protocol")
	}
}

func checkGroupRebalances(t *testing.T, o Options, name string, protocol GroupProtocol) {
	topic := create(t, openAdmin(t, o), name, 2)
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	var wg sync.WaitGroup
	start := func(m *recorder) {
		g := joinBy(t, o, topic, m, protocol)
		wg.Go(func() {
			for ctx.Err() == nil {
				_, err := g.Poll(ctx)
				g.AllowRebalance()
				if err != nil && ctx.Err() == nil && !errors.Is(err, ErrSession) {
					t.Error(err)
					return
				}
			}
			g.Close(bounded(t))
		})
	}
	one, two := newRecorder(), newRecorder()
	start(one)
	await(t, func() bool { return one.owns() == 2 })
	start(two)
	await(t, func() bool { return one.owns() == 1 && two.owns() == 1 })
	cancel()
	wg.Wait()
	if one.owns()+two.owns() != 0 {
		t.Fatal("closing revoked nothing")
	}
}

// refusable is a dialer whose connections can be ended, and refused.
type refusable struct {
	mu      sync.Mutex
	conns   []net.Conn
	refuses bool
	dials   int // refused
}

func (r *refusable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuses {
		r.dials++
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		r.conns = append(r.conns, c)
	}
	return c, err
}

func (r *refusable) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = true
	for _, c := range r.conns {
		c.Close()
	}
}

func (r *refusable) refused() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dials
}

// cutOff is a member that loses its network when it is given partitions, before the client has asked for offsets.
type cutOff struct {
	*recorder
	net *refusable
}

func (c cutOff) Assigned(ctx context.Context, ps []ledger.Partition) {
	c.net.refuse()
	c.recorder.Assigned(ctx, ps)
}

// A member whose coordinator refuses connections asks again with pauses, whatever the protocol: the client itself has none
// under the consumer protocol.
func TestRefusedConnectionsAreNotTriedInALoop(t *testing.T) {
	for _, protocol := range GroupProtocols() {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			_, o := cluster(t)
			topic := create(t, openAdmin(t, o), "t", 1)
			net := &refusable{}
			o.Dial = net.dial
			m := newRecorder()
			g, err := NewGroup(GroupOptions{Member: cutOff{m, net}, Group: "g", Topic: topic.Name, Incarnation: topic.Incarnation, Options: o, Protocol: protocol})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(bounded(t))
			var polling sync.WaitGroup
			polling.Go(func() {
				for ctx.Err() == nil {
					_, _ = g.Poll(ctx)
					g.AllowRebalance()
				}
			})
			await(t, func() bool { return net.refused() > 0 })
			time.Sleep(time.Second)
			n := net.refused()
			cancel()
			polling.Wait()
			g.Close(bounded(t))
			if n > 200 {
				t.Errorf("%d connections were refused within a second", n)
			}
		})
	}
}

// A member that is told to end while its join is not answered ends within its time: joining takes as long as a rebalance may.
func TestClosingDoesNotWaitForAJoin(t *testing.T) {
	for _, protocol := range []GroupProtocol{Eager, Cooperative} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			c, o := cluster(t)
			topic := create(t, openAdmin(t, o), "t", 1)
			joining, release := make(chan struct{}), make(chan struct{})
			t.Cleanup(func() { close(release) })
			var once sync.Once
			c.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				c.SleepControl(func() {
					once.Do(func() { close(joining) })
					<-release
				})
				return nil, nil, false
			})
			g := joinBy(t, o, topic, newRecorder(), protocol)
			<-joining
			began := time.Now()
			ctx, cancel := context.WithTimeout(bounded(t), 500*time.Millisecond)
			defer cancel()
			g.Close(ctx)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("closing took %v", took)
			}
		})
	}
}

// A member whose session failed is told so, also where it had no partitions, and is told when the group is joined again.
func TestAMemberWithoutPartitionsIsToldOfALostSession(t *testing.T) {
	c, o := cluster(t)
	topic := create(t, openAdmin(t, o), "t", 1)
	c.ControlKey(int16(kmsg.JoinGroup), func(q kmsg.Request) (kmsg.Response, error, bool) { // the first one
		r := q.ResponseKind().(*kmsg.JoinGroupResponse)
		r.ErrorCode = kerr.GroupMaxSizeReached.Code
		return r, nil, true
	})
	m := newRecorder()
	g := joinGroup(t, o, topic, m)
	defer g.Close(bounded(t))
	if _, err := g.Poll(bounded(t)); !errors.Is(err, ErrSession) {
		t.Errorf("the first poll: %v", err)
	}
	g.AllowRebalance()
	await(t, func() bool { return m.owns() == 1 })
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.events) < 2 || m.events[0] != "lost" || m.events[1] != "assigned" {
		t.Errorf("told %q", m.events)
	}
}

func await(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v", patience)
		}
	}
}
