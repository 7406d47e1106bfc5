package faultwire_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/faultwire"
	"amends/internal/manifest"
	"amends/internal/pace"
	"amends/internal/store"
)

// Every statement of every type of transaction meets each of these. Those of commits take the ten seconds of a commit's
// deadline where the connection stays.
var everywhere = []faultwire.Action{faultwire.CutBefore, faultwire.CutAfter, faultwire.Delay, faultwire.LoseReply}

// A COMMIT meets these too.
var atCommit = []faultwire.Action{faultwire.Late, faultwire.Warn}

// fullEnv asks for every action on every statement, also of the migration, which needs a minute more, and under the race
// detector. Otherwise those get one action a statement, in turn.
const fullEnv = "AMENDS_T3_FULL"

// listEnv prints what each type of transaction sends, and kindEnv runs one type alone, or several with commas between.
const (
	listEnv = "AMENDS_T3_LIST"
	kindEnv = "AMENDS_T3_KIND"
)

// shards is how many databases share the cases that need one alone.
const shards = 6

// enumeration runs cases, many at a time.
type enumeration struct {
	*testing.T
	shared chan *database // of all cases but those that need one alone
	alone  chan *database // of those
	bare   chan *database // of those that begin without the schema
	quick  chan struct{}  // slots of cases that compute
	slow   chan struct{}  // slots of cases that wait for a commit's deadline
	wg     sync.WaitGroup

	mu         sync.Mutex // guards what follows
	statements map[string]bool
	counts     map[faultwire.Action]int
	classes    map[class]int
	lists      int
}

// T3: each statement of each type of transaction, as recorded, meets each fault. The class of the result is the right one,
// what is stored is exactly the state before or the one after, and the production role ends as if nothing had happened.
// Shows F1, F2, F4, I21.
func TestSC18T3EveryStatementMeetsEveryFault(t *testing.T) {
	e := &enumeration{T: t, quick: make(chan struct{}, 16), slow: make(chan struct{}, 64),
		shared: make(chan *database, 1), alone: make(chan *database, shards), bare: make(chan *database, shards),
		statements: map[string]bool{}, counts: map[faultwire.Action]int{}, classes: map[class]int{}}
	s := server(t)
	e.shared <- newDatabase(t, s.New(), true, 16)
	for range shards {
		e.alone <- newDatabase(t, s.New(), true, 2)
		e.bare <- newDatabase(t, s.New(), false, 2)
	}
	for _, k := range kinds() {
		if only := os.Getenv(kindEnv); only != "" && !slices.Contains(strings.Split(only, ","), k.name) {
			continue
		}
		e.wg.Go(func() { e.kind(k) })
	}
	e.wg.Wait()
	if t.Failed() || os.Getenv(kindEnv) != "" {
		return
	}
	e.covered()
	total := 0
	for _, n := range e.counts {
		total += n
	}
	t.Logf("figure: %d types of transactions, %d statements, %d cases: %v; classes: %v", len(kinds()), e.lists, total, e.counts, e.classes)
	if len(kinds()) < 56 || e.lists < 500 || total < pace.Of(15_000)/10 {
		t.Error("fewer cases than this test is for")
	}
}

// covered fails for a statement of the store that no type of transaction has sent, in whatever directory it is.
func (e *enumeration) covered() {
	labels := map[string]string{}
	err := filepath.WalkDir("../store/postgres", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".sql" {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".sql")
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		label := faultwire.Label(string(text))
		if !e.statements[name] && !e.statements[label] {
			e.Errorf("no type of transaction sends %s: add one that does", path)
		}
		if !e.statements[name] && labels[label] != "" { // it may be the other that was sent
			e.Errorf("%s and %s begin alike: one of them must be told apart", path, labels[label])
		}
		labels[label] = path
		return nil
	})
	if err != nil || len(labels) < 100 {
		e.Fatalf("%d statements of the store: %v", len(labels), err)
	}
}

// kind records one type of transaction and runs its cases.
func (e *enumeration) kind(k *kind) {
	databases := e.shared
	switch {
	case k.unmigrated:
		databases = e.bare
	case k.alone:
		databases = e.alone
	}
	var record *cell
	err := k.with(databases, func(d *database) error {
		record = e.newCell(d, k, nil)
		return guarded(record.play)
	})
	if err == nil && ((record.err != nil) != k.refused || len(record.statements) == 0) {
		err = fmt.Errorf("undisturbed: %d statements, %w", len(record.statements), record.err)
	}
	if err != nil {
		e.Errorf("record %s: %v", k.name, err)
		return
	}
	e.mu.Lock()
	e.lists += len(record.statements)
	for _, s := range record.statements {
		e.statements[s] = true
	}
	e.mu.Unlock()
	if os.Getenv(listEnv) != "" {
		e.Logf("%s: %s", k.name, strings.Join(record.statements, ", "))
	}
	seen := map[string]int{}
	var cases sync.WaitGroup
	for i, name := range record.statements {
		actions := everywhere
		switch {
		case name == "COMMIT":
			actions = append(slices.Clone(everywhere), atCommit...)
		case (k.sparse || pace.Of(100) < 100) && os.Getenv(fullEnv) == "":
			actions = everywhere[(i+i/2)%len(everywhere):][:1] // in turn for what is prepared, and for what prepares
		}
		for _, a := range actions {
			f := &fault{name: name, nth: seen[name], action: a}
			cases.Go(func() {
				_ = k.with(databases, func(d *database) error {
					e.one(d, k, record, i, f)
					return nil
				})
			})
		}
		seen[name]++
	}
	cases.Wait()
}

// with runs a case on a database, which other cases use too unless it is to be alone.
func (k *kind) with(databases chan *database, run func(*database) error) error {
	d := <-databases
	if !k.alone {
		databases <- d
		return run(d)
	}
	defer func() { databases <- d }()
	return run(d)
}

// one runs one case and judges it.
func (e *enumeration) one(d *database, k *kind, record *cell, i int, f *fault) {
	slots := e.quick
	if f.name == "COMMIT" && (f.action == faultwire.Delay || f.action == faultwire.LoseReply) {
		slots = e.slow
	}
	slots <- struct{}{}
	defer func() { <-slots }()
	c := e.newCell(d, k, f)
	if k.looks {
		c.from = record
	}
	err := guarded(c.play)
	if err == nil {
		err = c.judge(record, i)
	}
	if err != nil {
		e.Errorf("%s: statement %d, %s (%d), %s: %v\nthe call returned: %v", k.name, i, f.name, f.nth, f.action, err, c.err)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.shot.Done() { // beside a call that is mild it may not meet its statement
		e.counts[f.action]++
		e.classes[classOf(c.err)]++
	}
}

// newCell makes a case.
func (e *enumeration) newCell(d *database, k *kind, f *fault) *cell {
	return &cell{database: d, kind: k, fault: f, cfg: d.config(), calls: map[string]int{}}
}

func outputIncarnation(c *cell) string { return fmt.Sprintf("kafka:%032x", c.number()+1<<50) }

// output is what the namespace is bound to.
func (c *cell) output() manifest.Output {
	return manifest.Output{Topic: c.topic.name, Incarnation: c.topic.incarnation, Partitions: 1}
}

// play runs the case from its setup to its end.
func (c *cell) play() {
	ctx := context.Background()
	c.proxy = faultwire.New(c.t, c.url)
	defer c.proxy.Close()
	defer func() {
		for _, end := range c.ends {
			end()
		}
	}()
	c.topic = &topic{name: "output", incarnation: outputIncarnation(c)}
	if c.kind.unmigrated {
		_, err := c.conn.Exec(ctx, "DROP SCHEMA IF EXISTS amends CASCADE")
		must(err)
	}
	if c.from != nil {
		c.cfg, c.direct, c.topic = c.from.cfg, c.from.direct, c.from.topic
	} else {
		c.prepare()
		c.kind.setup(c)
	}
	c.db = openDB(c.t, c.proxy.URL(), 4)
	defer c.db.Close()
	if !c.kind.absent {
		n, err := c.db.Namespace(ctx, c.cfg)
		must(err)
		c.ns = &probe{Namespace: n, c: c}
	}
	if err := c.kind.run(c); err != nil {
		ensure(c.met, "the run ended before its call of %s: %w", c.kind.op, err)
		must(fmt.Errorf("the run ended with: %w", err))
	}
	ensure(c.met, "the run made no call %d of %s", c.kind.nth, c.kind.op)
	c.final = c.state(true)
}

// prepare makes the namespace, one at a time: all that are made wait for one lock of the database, a few seconds at most.
func (c *cell) prepare() {
	if c.kind.absent {
		return
	}
	c.database.making.Lock()
	defer c.database.making.Unlock()
	var err error
	c.direct, err = c.database.db.Init(context.Background(), c.cfg, "source")
	must(err)
	if !c.kind.unbound {
		must(c.direct.Bind(context.Background(), c.output()))
	}
}

// judge compares the case with the undisturbed one, whose statement i met the fault.
func (c *cell) judge(record *cell, i int) error {
	if !c.shot.Done() && !c.kind.mild {
		return fmt.Errorf("the fault did not take place; the call sent %s", strings.Join(c.statements, ", "))
	}
	for at, name := range c.statements {
		if at > i {
			break
		}
		if !c.kind.mild && !slices.Contains(record.statements, name) { // what waits for another may look at it in more than one way
			return fmt.Errorf("the call sent %s, which the recorded one did not", name)
		}
	}
	if c.before != record.before {
		return fmt.Errorf("it began elsewhere:\n%s", cmp.Diff(record.before, c.before))
	}
	got, committed := classOf(c.err), slices.Contains(record.statements[:i], "COMMIT")
	want, state := unavailable, record.before
	switch a := c.fault.action; {
	case c.fault.name == "COMMIT":
		want = unknown
		if a == faultwire.CutAfter || a == faultwire.LoseReply || a == faultwire.Warn {
			state = record.after
		}
		if a == faultwire.Late || a == faultwire.Delay {
			state = "" // before, or already after
		}
		if replicated := !errors.Is(c.err, store.ErrNotReplicated); replicated == (a == faultwire.Warn) {
			return fmt.Errorf("the error is %v", c.err)
		}
	case c.fault.name == "ROLLBACK":
		want, state = success, record.after
	case committed:
		state = record.after
	}
	if got != want && !(c.kind.mild && got == classOf(record.err)) {
		return fmt.Errorf("class %s, want %s", got, want)
	}
	switch {
	case got == success && !c.kind.refused || state == "" && c.after == record.after:
		state = record.after
	case state == "":
		state = record.before
	}
	if c.after != state {
		return fmt.Errorf("stored after the call:\n%s", cmp.Diff(state, c.after))
	}
	if !c.kind.volatile && withoutSnapshots(c.final) != withoutSnapshots(record.final) {
		return fmt.Errorf("stored at the end:\n%s", cmp.Diff(record.final, c.final))
	}
	if d := cmp.Diff(record.topicValues(), c.topicValues()); d != "" {
		return fmt.Errorf("published:\n%s", d)
	}
	return nil
}

// topicValues are the published envelopes, but for the namespace's name.
func (c *cell) topicValues() (out []string) {
	for _, v := range c.topic.values() {
		out = append(out, strings.ReplaceAll(v, `"`+c.cfg.Namespace+`"`, `"namespace"`))
	}
	return out
}

// withoutSnapshots leaves out what only makes loading faster: a failure may cost it.
func withoutSnapshots(dump string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(dump, "\n"), func(line string) bool { return strings.HasPrefix(line, "snapshot ") }), "\n")
}
