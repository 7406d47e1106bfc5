package bubble

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"amends/internal/pace"
	"amends/internal/sim/choice"
)

// result is what one schedule came to.
type result struct {
	Seed      uint64
	Hash      uint64
	Events    int
	Virtual   time.Duration
	Faults    map[string]int
	Violation string
	Stood     string // what it stood still at, in the client's own locks: it has no other result then
	Answers   []byte
}

// play runs one schedule in a bubble of its own.
func play(t *testing.T, pick *choice.Source, without guard, log *strings.Builder) result {
	t.Helper()
	var r result
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w, err := newWorld(newPlan(pick), without, log)
		if err != nil {
			t.Fatal(err)
		}
		w.run()
		w.heal()
		w.converge()
		w.finish()
		w.check()
		w.cluster.Close()
		r = result{Hash: w.hash, Events: w.events, Virtual: time.Since(began), Faults: w.faults, Violation: w.violation, Answers: slices.Clone(pick.Taken())}
	})
	return r
}

// stands is how long, on the machine's clock, a schedule may take. Under virtual time none waits for anything.
const stands = 30 * time.Second

// watched runs do and ends the process, with the goroutines that are to blame, if it does not return: one that waits for a
// lock while its holder waits for the clock, or that never rests, stops virtual time. before, if not nil, is told of them.
func watched(name string, do func(), before func(blame string)) {
	limit := time.AfterFunc(stands, func() {
		var all, blame strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&all, 2)
		for _, one := range strings.Split(all.String(), "\n\n") {
			if head, _, _ := strings.Cut(one, "\n"); strings.Contains(head, "synctest") && !strings.Contains(head, "durable") {
				blame.WriteString(one + "\n\n")
			}
		}
		fmt.Fprintf(os.Stderr, "%s stands still\n%s", name, &blame)
		if before != nil {
			before(blame.String())
		}
		os.Exit(3)
	})
	defer limit.Stop()
	do()
}

// ofTheClient reports whether goroutines that stopped virtual time all wait for a lock inside the client: it holds locks of its
// own over calls, which only a bubble cannot bear.
func ofTheClient(blame string) bool {
	waiting := 0
	for _, one := range strings.Split(strings.TrimSpace(blame), "\n\n") {
		head, stack, _ := strings.Cut(one, "\n")
		locks, user, _ := strings.Cut(stack, "github.com/twmb/franz-go/pkg/")
		if !strings.Contains(head, "sync.Mutex.Lock") && !strings.Contains(head, "sync.RWMutex") || user == "" || strings.Contains(locks, "amends/") {
			return false
		}
		waiting++
	}
	return waiting > 0
}

// What the environment may say.
const (
	childJob = "AMENDS_BUBBLE_CHILD" // a job: the schedules that a child process runs
	oneSeed  = "AMENDS_BUBBLE_SEED"  // a schedule to run again with its trace
	savedIn  = "AMENDS_BUBBLE_SAVE"  // a folder for what failed, made small
)

// TestOneSchedule runs the schedule AMENDS_BUBBLE_SEED and prints its trace if it fails or with -v. With AMENDS_BUBBLE_SAVE
// what fails is shortened and kept in that folder. It is no test by itself.
func TestOneSchedule(t *testing.T) {
	text := os.Getenv(oneSeed)
	if text == "" {
		return // nobody asked
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s is no seed", oneSeed, text)
	}
	var log strings.Builder
	var r result
	watched(t.Name(), func() { r = play(t, choice.Random(seed), nil, &log) }, nil)
	t.Logf("seed %d: trace %x, %d events in %v: %v\n%s", seed, r.Hash, r.Events, r.Virtual, r.Faults, log.String())
	if r.Violation == "" {
		return
	}
	t.Error(r.Violation)
	if dir := os.Getenv(savedIn); dir != "" {
		save(t, filepath.Join(dir, fmt.Sprintf("seed-%d.txt", seed)), &r)
	}
}

// again is how often a schedule is played before it counts as one that does not fail: what goroutines do at one moment of
// virtual time has no fixed order.
const again = 3

// save shortens a plan that failed and writes it to a file.
func save(t *testing.T, name string, r *result) {
	t.Helper()
	answers := choice.Shrink(r.Answers, 100, func(answers []byte) bool {
		for range again {
			var got result
			watched("a shorter schedule", func() { got = play(t, choice.Replay(answers), nil, nil) }, nil)
			if got.Violation != "" {
				return true
			}
		}
		return false
	})
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := (&choice.Scenario{Note: r.Violation, Answers: answers}).Write(file); err != nil {
		t.Fatal(err)
	}
	for _, s := range newPlan(choice.Replay(answers)).steps {
		t.Log(s.String())
	}
}

// What failed once is played before anything else, as often as such a schedule may need.
func TestRegressions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			s, err := choice.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all := newTotals()
			child(t, all, job{Count: again, Answers: s.Answers})
			for _, f := range all.failures {
				t.Errorf("%s\n%s", s.Note, f)
			}
		})
	}
}

// Answers of all zeros are a schedule without trouble.
func TestZerosAreNoTrouble(t *testing.T) {
	var r result
	watched(t.Name(), func() { r = play(t, choice.Replay(nil), nil, nil) }, nil)
	delete(r.Faults, "partition taken over") // as where the second worker joins after the first had everything
	if r.Violation != "" || len(r.Faults) > 0 {
		t.Error(r.Violation, r.Faults)
	}
}

// job is what a child process does: schedules First to First+Count-1, or one plan Count times, up to the first that fails
// where a guard is taken out.
type job struct {
	First, Count uint64
	Without      string // one of canaries
	Answers      []byte
}

// sweep is after how many schedules a child collects what they left.
const sweep = 10

// TestChild runs the job that a parent gives, one JSON line a schedule on descriptor 3. It is no test by itself.
func TestChild(t *testing.T) {
	text := os.Getenv(childJob)
	if text == "" {
		return // nobody asked
	}
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		t.Fatal(err)
	}
	out := json.NewEncoder(os.NewFile(3, "results"))
	for seed := j.First; seed < j.First+j.Count; seed++ {
		if (seed-j.First)%sweep == 0 {
			runtime.GC() // what a bubble leaves is free after two collections, which come ever later by themselves
		}
		pick := choice.Random(seed)
		if j.Answers != nil {
			pick = choice.Replay(j.Answers)
		}
		var r result
		watched(fmt.Sprintf("schedule %d", seed), func() { r = play(t, pick, canaries[j.Without], nil) }, func(blame string) {
			if ofTheClient(blame) {
				_ = out.Encode(&result{Seed: seed, Stood: blame})
			}
		})
		r.Seed = seed
		if err := out.Encode(&r); err != nil {
			t.Fatal(err)
		}
		if j.Without != "" && r.Violation != "" {
			return
		}
	}
}

// totals is what many schedules came to.
type totals struct {
	mu        sync.Mutex // guards all
	schedules int
	events    int
	virtual   time.Duration
	stood     map[uint64]bool // schedules
	faults    map[string]int
	hashes    map[uint64]struct{}
	failures  []string
}

func newTotals() *totals {
	return &totals{faults: map[string]int{}, hashes: map[uint64]struct{}{}, stood: map[uint64]bool{}}
}

func (s *totals) add(r *result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Stood != "" {
		s.stood[r.Seed] = true
		return
	}
	s.schedules++
	s.events += r.Events
	s.virtual += r.Virtual
	s.hashes[r.Hash] = struct{}{}
	for k, n := range r.Faults {
		s.faults[k] += n
	}
	if r.Violation != "" {
		s.failures = append(s.failures, fmt.Sprintf("%s=%d: %s", oneSeed, r.Seed, r.Violation))
	}
}

func (s *totals) failed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.failures)
}

// standing reports whether a schedule stood still.
func (s *totals) standing(seed uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stood[seed]
}

func (s *totals) fail(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, text)
}

// spread runs count schedules from first on, in as many child processes as there are cores: each has one core, so that its
// goroutines take turns in an order that nothing else disturbs.
func spread(t *testing.T, first, count uint64) *totals {
	t.Helper()
	s := newTotals()
	children := min(uint64(runtime.NumCPU()), count)
	var wg sync.WaitGroup
	for i := range children {
		from, to := first+count*i/children, first+count*(i+1)/children
		wg.Go(func() { child(t, s, job{First: from, Count: to - from}) })
	}
	wg.Wait()
	return s
}

// child does a job in a process, and in another one from behind a schedule that stood still.
func child(t *testing.T, s *totals, j job) {
	for end := j.First + j.Count; j.First < end && (j.Without == "" || s.failed() == 0); j.Count = end - j.First {
		next, err := one(t, s, j)
		if err != nil {
			s.fail(fmt.Sprintf("%s=%d: %v", oneSeed, next, err))
			return
		}
		j.First = next
	}
}

// one does a job in one process and returns the first schedule that it has no result of.
func one(t *testing.T, s *totals, j job) (next uint64, err error) {
	text, err := json.Marshal(j)
	if err != nil {
		return j.First, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return j.First, err
	}
	defer in.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.timeout=2h")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=400", childJob+"="+string(text))
	cmd.ExtraFiles = []*os.File{out}
	said := strings.Builder{}
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Start()
	out.Close()
	if err != nil {
		return j.First, err
	}
	next = j.First
	var r result
	for results := json.NewDecoder(in); ; next++ {
		r = result{}
		if results.Decode(&r) != nil {
			break
		}
		s.add(&r)
	}
	err = cmd.Wait()
	if err == nil && (next == j.First+j.Count || j.Without != "") || s.standing(next-1) {
		return next, nil
	}
	return next, fmt.Errorf("the process ended (%w) and said:\n%.20000s", err, said.String())
}

// schedules returns how many schedules the test runs: AMENDS_BUBBLE_SCHEDULES, or 200 and fewer at a slow pace.
func schedules(t *testing.T) uint64 {
	t.Helper()
	v := os.Getenv("AMENDS_BUBBLE_SCHEDULES")
	if v == "" {
		return uint64(pace.Of(200))
	}
	n, err := strconv.ParseUint(v, 10, 32)
	if err != nil || n < 1 {
		t.Fatalf("AMENDS_BUBBLE_SCHEDULES=%s is no number of schedules", v)
	}
	return n
}

// The real client under virtual time: whatever happens, what was written is processed, published and applied once, and an
// independent verification says so.
// Shows B1, B7, I1, I2, I4, I23.
func TestSC18SC22SC24T2RealClientUnderVirtualTime(t *testing.T) {
	n := schedules(t)
	began := time.Now()
	s := spread(t, 0, n)
	for i, f := range s.failures {
		if i == 10 {
			t.Errorf("and %d more", len(s.failures)-i)
			break
		}
		t.Error(f)
	}
	t.Logf("figure: %d schedules, %d distinct, %d events, %v of virtual time in %v; %d stood still in the client's locks", s.schedules, len(s.hashes), s.events, s.virtual.Round(time.Second), time.Since(began).Round(time.Second/10), len(s.stood))
	for _, k := range slices.Sorted(maps.Keys(s.faults)) {
		t.Logf("figure: %s %d", k, s.faults[k])
	}
	s.floors(t, int(n))
}

// floors fails a run that did less than was asked for.
func (s *totals) floors(t *testing.T, n int) {
	t.Helper()
	if s.schedules+len(s.stood) != n || len(s.stood) > max(2, n*mostStood/100) || len(s.hashes) < n*98/100 || s.events < leastEvents*n {
		t.Errorf("%d of %d schedules, %d stood still, %d distinct, %d events: fewer than asked for", s.schedules, n, len(s.stood), len(s.hashes), s.events)
	}
	if n < floorsFrom {
		return
	}
	least := map[string]int{"partition taken over": n / 4, "lease taken over": n / 4, "fenced": n / 25, "ended as fenced": n / 25, "reply really lost": n / 8, "published again": n / 250}
	for _, name := range troubleNames[1:] {
		least[name] = n / 10
	}
	for _, name := range harmNames[1:] {
		least[name] = n / 200
	}
	for name, want := range least {
		if s.faults[name] < want {
			t.Errorf("%s: %d times, at least %d in %d schedules", name, s.faults[name], want, n)
		}
	}
}

// Limits of floors.
const (
	leastEvents = 30    // a schedule, on average
	floorsFrom  = 1_000 // schedules: fewer need not meet every fault
	mostStood   = 1     // percent of schedules that may stand still in locks of the client
)
