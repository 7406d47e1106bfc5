package bubble

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/roles"
	"amends/internal/sim/serial"
	"amends/internal/sim/topic"
	"amends/internal/store"
	"amends/internal/store/memory"
)

// The topics of every schedule.
const (
	sourceName = "source"
	outputName = "output"
)

// world is one schedule: a cluster, a store, processes, and what must hold.
type world struct {
	plan     *plan
	stack    *kfake.VirtualNetwork
	cluster  *kfake.Cluster
	addrs    []string
	db       *memory.DB
	base     *memory.Namespace
	ns       roles.Namespace // base, or with a guard taken out
	m        *manifest.Manifest
	history  *serial.History
	author   *writer
	procs    []*proc
	rows     map[row]chan struct{}
	began    time.Time
	running  sync.WaitGroup // everything that runs beside the plan
	healed   chan struct{}  // closed when all trouble ends
	ending   chan struct{}  // closed when no process is to be started again
	striking sync.Mutex     // held while trouble begins or ends; nothing waits while it is held
	log      *strings.Builder

	mu        sync.Mutex // guards the rest; nothing waits while it is held
	books     []*serial.Books
	receipts  [][]receipt
	pages     [][]page
	claimer   []string
	holder    map[row]string
	limits    []ledger.Frontier // of a source that was created again: nothing from there on may have an effect
	recreated string            // topic
	noticed   map[string]bool   // processes that ended because of it
	back      time.Time         // of the database
	faults    map[string]int
	violation string
	hash      uint64
	events    int
}

// receipt and page are effects that are held against the books once the topic is read.
type receipt struct {
	lease store.Lease
	pos   store.RelayPosition
	r     store.Receipt
}

type page struct {
	lease store.Lease
	pos   store.ViewPosition
	page  *store.ViewPage
}

// guard takes a guard out of a store, for a canary.
type guard func(roles.Namespace) roles.Namespace

// newWorld makes the services and topics of a plan. Nothing runs yet but the brokers.
func newWorld(p *plan, without guard, log *strings.Builder) (*world, error) {
	w := &world{plan: p, stack: &kfake.VirtualNetwork{}, db: memory.New(), rows: map[row]chan struct{}{}, holder: map[row]string{}, faults: map[string]int{},
		noticed: map[string]bool{}, healed: make(chan struct{}), ending: make(chan struct{}), log: log, began: time.Now()}
	var err error
	w.cluster, err = kfake.NewCluster(kfake.Ports(9092, 9093), kfake.ListenFn(w.stack.Listen), kfake.GroupMinSessionTimeout(time.Second),
		kfake.BrokerConfigs(map[string]string{"group.consumer.session.timeout.ms": "6000", "group.consumer.heartbeat.interval.ms": "2000"}))
	if err != nil {
		return nil, fmt.Errorf("start brokers: %w", err)
	}
	w.addrs = w.cluster.ListenAddrs()
	setting, plans := p.history()
	n := int32(len(plans))
	source, err := w.create(sourceName, n)
	if err != nil {
		return nil, err
	}
	output, err := w.create(outputName, n)
	if err != nil {
		return nil, err
	}
	cfg, err := setting.Config("bubble", source)
	if err != nil {
		return nil, err
	}
	if w.history, err = serial.Make(cfg, plans); err != nil {
		return nil, err
	}
	w.m = &manifest.Manifest{SourceTopic: sourceName, Config: cfg, Output: &manifest.Output{Topic: outputName, Incarnation: output, Partitions: n}}
	ctx := context.Background()
	if w.base, err = w.db.Init(ctx, cfg, sourceName); err != nil {
		return nil, err
	}
	if err := w.base.Bind(ctx, *w.m.Output); err != nil {
		return nil, err
	}
	w.ns = w.base
	if without != nil {
		w.ns = without(w.base)
	}
	for i := range n {
		at := ledger.Partition(i)
		part := &w.history.Parts[at]
		log := topic.New(sourceName, serial.SourceID, 1).Log(0)
		for j := range part.Writes {
			part.Writes[j].Do(log)
		}
		w.books = append(w.books, serial.NewBooks(at, part, log, topic.New(outputName, serial.OutputID, 1).Log(0), w.broken))
		w.limits = append(w.limits, part.End)
		for _, role := range []store.Role{"", store.Relay, store.View} {
			w.rows[row{role, at}] = make(chan struct{}, 1)
		}
	}
	w.receipts, w.pages, w.claimer = make([][]receipt, n), make([][]page, n), make([]string, n)
	w.author = newWriter(w)
	for i, rs := range p.procs() {
		w.procs = append(w.procs, &proc{w: w, id: i, name: fmt.Sprintf("proc-%d", i), roles: rs, again: restart})
	}
	return w, nil
}

// create makes a topic as the contract wants it (S9) and returns its incarnation.
func (w *world) create(name string, partitions int32) (string, error) {
	configs := map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
	if err := w.cluster.CreateTopic(name, partitions, configs); err != nil {
		return "", fmt.Errorf("create topic %s: %w", name, err)
	}
	return fmt.Sprintf("kafka:%x", w.cluster.TopicInfo(name).TopicID), nil
}

// say notes what happens, under mu. Schedules that said the same did the same.
func (w *world) say(what string, args ...any) {
	w.events++
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %s %v", w.hash, what, args)
	w.hash = h.Sum64()
	if w.log != nil {
		fmt.Fprintf(w.log, "%10v %s %v\n", time.Since(w.began), what, args)
	}
}

func (w *world) tell(what string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say(what, args...)
}

// count counts something that happened, under mu.
func (w *world) count(what string) { w.faults[what]++ }

func (w *world) struck(what string) {
	if what == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count(what)
}

// broken notes the first thing that does not hold, under mu.
func (w *world) broken(invariant, detail string, args ...any) {
	if w.violation == "" {
		w.violation = invariant + ": " + fmt.Sprintf(detail, args...)
		w.say("VIOLATION", w.violation)
	}
}

func (w *world) violate(invariant, detail string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken(invariant, detail, args...)
}

func (w *world) databaseBack() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.back
}

// stable is how far readers of the source see a partition, its end of the output; -1 where the topic is not there.
func (w *world) stable(p ledger.Partition) ledger.Frontier {
	if info := w.cluster.PartitionInfo(sourceName, int32(p)); info != nil {
		return ledger.Frontier(info.LastStableOffset)
	}
	return -1
}

func (w *world) end(p ledger.Partition) ledger.Frontier {
	if info := w.cluster.PartitionInfo(outputName, int32(p)); info != nil {
		return ledger.Frontier(info.HighWatermark)
	}
	return -1
}

// The effects, each under mu.

func (w *world) claimed(l *life, p ledger.Partition, o store.Owned) {
	w.books[p].Claim(o)
	if was := w.claimer[p]; was != "" && was != l.name {
		w.count("partition taken over")
	}
	w.claimer[p] = l.name
	w.say("claimed", l.name, p, o.Token.Epoch, o.Frontier)
}

func (w *world) committed(l *life, t, installed store.Token, b *ledger.Batch, stable ledger.Frontier) {
	w.books[b.Partition].Commit(t, installed, b)
	switch {
	case b.Next > w.limits[b.Partition]:
		w.broken("I23", "partition %d: a commit to frontier %d, the topic that was there ended at %d", b.Partition, b.Next, w.limits[b.Partition])
	case b.Next > stable && w.recreated != sourceName:
		w.broken("I1", "partition %d: a commit to frontier %d, readers see the source up to %d", b.Partition, b.Next, stable)
	}
	w.say("committed", l.name, b.Partition, b.Expected, b.Next)
}

func (w *world) taken(l *life, got store.Lease) {
	r := row{got.Role, got.Partition}
	if was := w.holder[r]; was != "" && was != l.name {
		w.count("lease taken over")
	}
	w.holder[r] = l.name
	w.say("lease", l.name, got.Role, got.Partition, got.Term)
}

func (w *world) receipted(l *life, lease store.Lease, pos store.RelayPosition, r store.Receipt, end ledger.Frontier) {
	if r.End() > end && w.recreated != outputName {
		w.broken("I8", "partition %d: a receipt to output offset %d, the topic ended at %d when it was sent", r.Partition, r.End(), end)
	}
	w.receipts[r.Partition] = append(w.receipts[r.Partition], receipt{lease, pos, r})
	w.say("receipt", l.name, r.Partition, r.First, r.Next, r.Offset)
}

func (w *world) applied(l *life, lease store.Lease, pos store.ViewPosition, p *store.ViewPage) {
	w.pages[p.Partition] = append(w.pages[p.Partition], page{lease, pos, p})
	w.say("applied", l.name, p.Partition, p.Next.Output, p.Next.Sequence)
}

// run plays the plan's steps.
func (w *world) run() {
	w.tell("plan", w.plan.seed, string(w.plan.protocol), w.plan.apart)
	for _, p := range w.procs {
		w.running.Go(p.supervise)
	}
	w.running.Go(w.expire)
	for i := range w.plan.steps {
		s := &w.plan.steps[i]
		time.Sleep(s.pause)
		w.author.write(ledger.Partition(s.partition%len(w.books)), s.writes)
		w.strike(s)
	}
}

// strike lets a step's trouble happen.
func (w *world) strike(s *step) {
	if s.what == none {
		return
	}
	p := w.procs[s.proc%len(w.procs)]
	l := p.current()
	w.mu.Lock()
	w.count(troubleNames[s.what])
	w.say(troubleNames[s.what], p.id, int(s.call), int(s.harm), s.wait, s.answer, s.count)
	w.mu.Unlock()
	if l == nil && s.what != outage && s.what != answered && s.what != coordinate && s.what != lead && s.what != promoted && s.what != recreated {
		return // it is down already
	}
	switch s.what {
	case database:
		l.port.arm(s.call, arm{s.harm, s.wait})
	case outage:
		w.mu.Lock()
		w.back = time.Now().Add(s.wait)
		w.mu.Unlock()
	case cutOff:
		l.net.refuse(true)
		w.after(s.wait, func() { l.net.refuse(false) })
	case stalled:
		l.net.flow.set(true)
		w.after(s.wait, func() { l.net.flow.set(false) })
	case replyLost:
		l.net.loseReply()
	case dropped:
		l.net.drop()
	case lagging:
		l.net.slow(5 * time.Millisecond)
		w.after(s.wait, func() { l.net.slow(0) })
	case answered:
		w.answer(&brokerAnswers[s.answer], s.count)
	case coordinate:
		w.cluster.RehashCoordinators()
	case lead:
		w.lead()
	case killed:
		p.rest(s.wait)
		l.kill()
	case asked:
		p.rest(s.wait)
		l.ask()
	case stopped:
		w.stop(l, s.wait)
	case overtaken:
		w.overtake(l, s.wait)
	case promoted:
		w.mu.Lock()
		w.db.Promote()
		w.mu.Unlock()
	case recreated:
		w.recreate([]string{sourceName, outputName}[s.count])
	}
}

// after does something later, unless all trouble ends first: that ends what it would have ended, and begins nothing.
func (w *world) after(d time.Duration, do func()) {
	w.running.Go(func() {
		select {
		case <-time.After(d):
		case <-w.healed:
			return
		}
		w.striking.Lock()
		defer w.striking.Unlock()
		select {
		case <-w.healed:
		default:
			do()
		}
	})
}

// answer makes the broker answer the next requests of a kind with an error; what the author and the checks send is spared.
func (w *world) answer(a *brokerAnswer, count int) {
	f := kfake.Fault{Keys: []kmsg.Key{a.key}, Err: a.err, Count: count}
	if a.key == kmsg.Produce {
		f.Topic = outputName
	}
	if a.key == kmsg.InitProducerID {
		f.When = func(r kmsg.Request) bool { return r.(*kmsg.InitProducerIDRequest).TransactionalID == nil }
	}
	if a.key == kmsg.FindCoordinator {
		f.When = func(r kmsg.Request) bool { return r.(*kmsg.FindCoordinatorRequest).CoordinatorType == 0 }
	}
	w.cluster.Fault(f)
}

// lead gives every partition its other broker.
func (w *world) lead() {
	for _, name := range []string{sourceName, outputName} {
		for _, p := range w.cluster.PartitionInfos(name) {
			_ = w.cluster.MoveTopicPartition(name, p.Partition, 1-p.Leader)
		}
	}
}

// stop makes a process stand still.
func (w *world) stop(l *life, d time.Duration) {
	l.net.flow.set(true)
	l.paused.set(true)
	w.after(d, func() {
		l.paused.set(false)
		l.net.flow.set(false)
	})
}

// overtake keeps a process from broker and database for longer than anybody waits for it, while its next writes are on their
// way: they arrive when others have long gone on, or are about to.
func (w *world) overtake(l *life, d time.Duration) {
	for _, c := range []call{committing, acknowledging, applying} {
		l.port.arm(c, arm{delayed, 9*time.Second + d/2})
		for _, p := range w.procs {
			if other := p.current(); other != nil && other != l {
				other.port.arm(c, arm{delayed, d})
			}
		}
	}
	for p := range w.books {
		w.author.write(ledger.Partition(p), 1)
	}
	w.after(400*time.Millisecond, func() {
		l.net.flow.set(true)
		l.port.leave(time.Now().Add(8 * time.Second))
	})
	w.after(9*time.Second, func() { l.net.flow.set(false) })
	if w.owns(l) {
		time.Sleep(9 * time.Second) // or healing comes first
	}
}

// owns reports whether a process was the last to claim a partition.
func (w *world) owns(l *life) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.claimer, l.name)
}

func (w *world) logger(name string) *slog.Logger {
	if w.log == nil {
		return nil
	}
	return slog.New(slog.NewTextHandler(lines{w}, &slog.HandlerOptions{Level: slog.LevelInfo})).With("process", name)
}

// lines is the log of processes, in the trace.
type lines struct{ w *world }

func (l lines) Write(b []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	fmt.Fprintf(l.w.log, "%10v       %s", time.Since(l.w.began), b)
	return len(b), nil
}

// broker returns the options of a client with a network of its own.
func (w *world) broker(dial *network, name string, log *slog.Logger) broker.Options {
	return broker.Options{Brokers: w.addrs, Dial: dial.dial, ClientID: name, Logger: log}
}
