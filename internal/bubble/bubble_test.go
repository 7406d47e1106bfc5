package bubble

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
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
const stands = 60 * time.Second

// watched runs do and ends the process with every stack if it does not return: a goroutine that waits for a lock while
// another holds it and waits for the clock stops virtual time.
func watched(name string, do func()) {
	limit := time.AfterFunc(stands, func() {
		fmt.Fprintf(os.Stderr, "%s stands still\n", name)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
		os.Exit(3)
	})
	defer limit.Stop()
	do()
}

const (
	childSeeds = "AMENDS_BUBBLE_CHILD" // "FIRST COUNT": the schedules that a child process runs
	oneSeed    = "AMENDS_BUBBLE_SEED"
)

// TestOneSchedule runs a schedule again and prints its trace: AMENDS_BUBBLE_SEED=N.
func TestOneSchedule(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv(oneSeed), 10, 64)
	if err != nil {
		seed = 0
	}
	var log strings.Builder
	watched(t.Name(), func() {
		r := play(t, choice.Random(seed), nil, &log)
		t.Logf("seed %d: trace %x, %d events in %v: %v\n%s", seed, r.Hash, r.Events, r.Virtual, r.Faults, log.String())
		if r.Violation != "" {
			t.Error(r.Violation)
		}
	})
}

// TestChild runs the schedules that a parent asks for, one JSON line each on descriptor 3. It is no test by itself.
func TestChild(t *testing.T) {
	var first, count uint64
	if _, err := fmt.Sscan(os.Getenv(childSeeds), &first, &count); err != nil {
		return // nobody asked
	}
	out := json.NewEncoder(os.NewFile(3, "results"))
	pick := choice.Random(0)
	for seed := first; seed < first+count; seed++ {
		watched(fmt.Sprintf("schedule %d", seed), func() {
			pick.Reset(seed)
			r := play(t, pick, nil, nil)
			r.Seed = seed
			if err := out.Encode(&r); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// totals is what many schedules came to.
type totals struct {
	mu        sync.Mutex // guards all
	schedules int
	events    int
	virtual   time.Duration
	faults    map[string]int
	hashes    map[uint64]struct{}
	failures  []string
}

func (s *totals) add(r *result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schedules++
	s.events += r.Events
	s.virtual += r.Virtual
	s.hashes[r.Hash] = struct{}{}
	for k, n := range r.Faults {
		s.faults[k] += n
	}
	if r.Violation != "" {
		s.failures = append(s.failures, fmt.Sprintf("seed %d: %s", r.Seed, r.Violation))
	}
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
	s := &totals{faults: map[string]int{}, hashes: map[uint64]struct{}{}}
	children := min(uint64(runtime.NumCPU()), count)
	var wg sync.WaitGroup
	for i := range children {
		from, to := first+count*i/children, first+count*(i+1)/children
		wg.Go(func() { child(t, s, from, to-from) })
	}
	wg.Wait()
	return s
}

func child(t *testing.T, s *totals, first, count uint64) {
	in, out, err := os.Pipe()
	if err != nil {
		s.fail(err.Error())
		return
	}
	defer in.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.timeout=2h")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", fmt.Sprintf("%s=%d %d", childSeeds, first, count))
	cmd.ExtraFiles = []*os.File{out}
	said, done := strings.Builder{}, first
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Start()
	out.Close()
	if err != nil {
		s.fail(err.Error())
		return
	}
	for results := json.NewDecoder(in); ; {
		var r result
		if results.Decode(&r) != nil {
			break
		}
		s.add(&r)
		done++
	}
	if err := cmd.Wait(); err != nil || done != first+count {
		s.fail(fmt.Sprintf("seed %d: the process ended (%v) and said:\n%.20000s", done, err, said.String()))
	}
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
	t.Logf("figure: %d schedules, %d distinct, %d events, %v of virtual time in %v", s.schedules, len(s.hashes), s.events, s.virtual.Round(time.Second), time.Since(began).Round(time.Second/10))
	kinds := slices.Sorted(maps.Keys(s.faults))
	for _, k := range kinds {
		t.Logf("figure: %s %d", k, s.faults[k])
	}
}
