package bubble

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/roles"
	"amends/internal/sim/choice"
	"amends/internal/sim/serial"
	"amends/internal/workload"
)

// plan is everything that a schedule does from outside, decided before it begins: so a schedule is its answers, and they can
// be kept, shortened and played again.
type plan struct {
	seed     uint64 // of the history
	protocol broker.GroupProtocol
	apart    bool // one process a role, instead of all roles in each
	steps    []step
}

// step is a pause, something written to a partition, and something that goes wrong.
type step struct {
	pause     time.Duration
	writes    int // of the plan of partition
	partition int
	what      trouble
	proc      int
	call      call
	harm      harm
	wait      time.Duration
	answer    int // of brokerAnswers
	count     int
}

// trouble is a kind of thing that goes wrong.
type trouble uint8

const (
	none       trouble = iota
	database           // one call of one process
	outage             // the database is away
	cutOff             // connections are refused
	stalled            // nothing arrives
	replyLost          // one reply, with its connection
	dropped            // all connections of a process end
	lagging            // everything takes time
	answered           // the broker answers a request with an error
	coordinate         // group and transaction coordinators move
	lead               // partitions get other leaders
	killed             // a process ends at once
	asked              // a process is asked to end
	stopped            // a process stands still and goes on
	overtaken          // a process is kept from everybody while what it has sent is on its way
	promoted           // the database server is another one, with nothing lost
	recreated          // a topic is deleted and created again
	troubles
)

var troubleNames = [...]string{none: "", database: "database call", outage: "database away", cutOff: "cut off", stalled: "network stalled", replyLost: "reply lost",
	dropped: "connections dropped", lagging: "network lagging", answered: "broker error", coordinate: "coordinator moved", lead: "leaders moved", killed: "killed",
	asked: "asked to end", stopped: "stopped", overtaken: "overtaken", promoted: "server promoted", recreated: "topic recreated"}

// brokerAnswer is an error that a healthy cluster gives at times.
type brokerAnswer struct {
	key kmsg.Key
	err *kerr.Error
}

var brokerAnswers = []brokerAnswer{
	{kmsg.Produce, kerr.NotLeaderForPartition}, {kmsg.Produce, kerr.NotEnoughReplicas}, {kmsg.Produce, kerr.NotEnoughReplicasAfterAppend},
	{kmsg.Produce, kerr.RequestTimedOut}, {kmsg.Produce, kerr.KafkaStorageError}, {kmsg.Produce, kerr.UnknownServerError},
	{kmsg.Produce, kerr.OutOfOrderSequenceNumber},
	{kmsg.Fetch, kerr.NotLeaderForPartition}, {kmsg.Fetch, kerr.KafkaStorageError}, {kmsg.Fetch, kerr.UnknownLeaderEpoch},
	{kmsg.Fetch, kerr.UnknownServerError}, {kmsg.ListOffsets, kerr.NotLeaderForPartition}, {kmsg.ListOffsets, kerr.LeaderNotAvailable},
	{kmsg.Metadata, kerr.LeaderNotAvailable}, {kmsg.InitProducerID, kerr.CoordinatorLoadInProgress},
	{kmsg.FindCoordinator, kerr.CoordinatorNotAvailable}, {kmsg.JoinGroup, kerr.CoordinatorLoadInProgress},
	{kmsg.JoinGroup, kerr.NotCoordinator}, {kmsg.SyncGroup, kerr.RebalanceInProgress}, {kmsg.SyncGroup, kerr.UnknownMemberID},
	{kmsg.Heartbeat, kerr.NotCoordinator}, {kmsg.Heartbeat, kerr.UnknownMemberID}, {kmsg.Heartbeat, kerr.IllegalGeneration},
	{kmsg.Heartbeat, kerr.RebalanceInProgress}, {kmsg.ConsumerGroupHeartbeat, kerr.NotCoordinator},
	{kmsg.ConsumerGroupHeartbeat, kerr.UnknownMemberID}, {kmsg.ConsumerGroupHeartbeat, kerr.FencedMemberEpoch},
	{kmsg.LeaveGroup, kerr.CoordinatorNotAvailable},
}

// What a plan chooses among.
var (
	pauses = []time.Duration{0, 5 * time.Millisecond, 40 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond, time.Second, 2500 * time.Millisecond}
	waits  = []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 9 * time.Second}
)

// Limits of a plan.
const (
	mostSteps  = 24
	leastSteps = 6
)

// newPlan asks pick for a plan. Answers of all zeros are a plan without trouble.
func newPlan(pick *choice.Source) *plan {
	p := &plan{seed: uint64(pick.One(serial.Histories)), protocol: broker.GroupProtocols()[pick.Seldom(3, 500)], apart: pick.Seldom(2, 250) == 1}
	n := leastSteps + pick.One(mostSteps-leastSteps)
	for range n {
		s := step{pause: pauses[pick.One(len(pauses))], partition: pick.One(2), writes: pick.One(3) + 1}
		s.what = trouble(pick.Seldom(int(recreated), 650))
		if s.what == promoted && pick.Seldom(4, 300) > 0 {
			s.what = recreated
		}
		s.details(pick)
		p.steps = append(p.steps, s)
	}
	return p
}

// details asks for what a trouble needs to know.
func (s *step) details(pick *choice.Source) {
	if s.what == none {
		return
	}
	s.proc, s.wait = pick.One(6), waits[pick.One(len(waits))]
	switch s.what {
	case database:
		s.call, s.harm = call(pick.One(int(calls))), harm(1+pick.One(int(harms)-1))
	case answered:
		s.answer, s.count = pick.One(len(brokerAnswers)), 1+pick.One(3)
	case recreated:
		s.count = pick.One(2)
	}
}

func (s *step) String() string {
	return fmt.Sprintf("after %v: %d to partition %d; %s proc %d call %d %s wait %v answer %d count %d", s.pause, s.writes, s.partition, troubleNames[s.what], s.proc, s.call,
		harmNames[s.harm], s.wait, s.answer, s.count)
}

// procs returns the processes of a plan: the roles of each.
func (p *plan) procs() [][]roles.Role {
	if p.apart {
		return [][]roles.Role{{roles.Source}, {roles.Source}, {roles.Relay}, {roles.Relay}, {roles.View}, {roles.View}}
	}
	return [][]roles.Role{roles.All(), roles.All()}
}

// longestValue leaves out the records whose only difficulty is their size.
const longestValue = 4_096

// history returns the setting of a plan's source and what its author writes: as serial.New, a little more of it, and no
// marker without a transaction, which no client can write.
func (p *plan) history() (workload.Setting, [][]serial.Write) {
	r := workload.NewRand(p.seed*0x9e3779b9 + 11)
	o := workload.HistoryOptions{Seed: p.seed + 1_000, Records: r.Between(8, 36), Keys: r.Between(1, 3), Days: 4, Partitions: r.Between(1, 2), Poison: 8, Conflicts: 12, Counts: 10,
		Hostile: r.Percent(10), Edges: r.Percent(15), Open: r.Percent(30)}
	h := workload.NewHistory(o)
	plans := make([][]serial.Write, o.Partitions)
	for i := range plans {
		plans[i] = author(r, h.Partition(ledger.Partition(i)))
	}
	return h.Setting, plans
}

// author puts records into transactions, and aborted ones among them.
func author(r *workload.Rand, records []ledger.SourceRecord) (writes []serial.Write) {
	put := func(kind serial.Kind, rec ledger.SourceRecord) {
		writes = append(writes, serial.Write{Kind: kind, Key: rec.Key, Value: rec.Value, Timestamp: rec.Timestamp})
	}
	var short []ledger.SourceRecord
	for _, rec := range records {
		if len(rec.Key) <= longestValue && len(rec.Value) <= longestValue {
			short = append(short, rec)
		}
	}
	for i := 0; i < len(short); {
		switch kind := r.Below(12); {
		case kind == 0: // what aborted would have counted
			put(serial.Inside, short[len(short)-1])
			put(serial.Abort, ledger.SourceRecord{})
		case kind < 4:
			for n := r.Between(1, 3); n > 0 && i < len(short); n, i = n-1, i+1 {
				put(serial.Inside, short[i])
			}
			put(serial.Commit, ledger.SourceRecord{})
		default:
			put(serial.Plain, short[i])
			i++
		}
	}
	if len(short) > 0 && r.Percent(30) {
		put(serial.Inside, short[0])
		put(serial.Abort, ledger.SourceRecord{})
	}
	return writes
}
