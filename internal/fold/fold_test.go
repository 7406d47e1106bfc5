package fold

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"amends/internal/ledger"
	"amends/internal/pace"
)

var origin, _ = ledger.DateOf(2026, 1, 1)

func active(kind ledger.Kind, quantity int64, at int) ledger.Payload {
	return ledger.Payload{State: ledger.Active, Kind: kind, Quantity: ledger.Quantity(quantity), Day: origin + ledger.Day(at)}
}

// steps walks a refold as text.
func steps(c Cursor) []string {
	var out []string
	for c.Next() {
		s := c.Step
		text := fmt.Sprintf("@%d %d<-%d", s.Day-origin, s.Close, s.Previous)
		if !s.Active {
			text = fmt.Sprintf("@%d gone", s.Day-origin)
		}
		out = append(out, text)
	}
	if day := c.Unrepresentable(); day != 0 {
		out = append(out, fmt.Sprintf("@%d unrepresentable", day-origin))
	}
	return out
}

// publishAll notes what a refold of the whole key derives.
func publishAll(d *Days, opening int64) {
	c := d.Refold(opening, Touched{})
	var changes []ledger.Change
	for c.Next() {
		if s := c.Step; s.Active != s.Present || s.Active && s.Close != s.Old {
			version, _ := c.Versions()
			changes = append(changes, ledger.Change{Kind: ledger.Balance, Day: s.Day, Version: version + 1, Present: s.Active, Close: s.Close})
			if !s.Active {
				changes[len(changes)-1].Close = 0
			}
		}
	}
	if !d.Commit(changes) {
		panic("not a continuation")
	}
}

// TestAffectedSuffix: SC08, C8 and C9; a refold goes as far as something can change, and no farther.
func TestAffectedSuffix(t *testing.T) {
	t.Parallel()
	d := New(origin)
	for at := range 10 {
		if at != 6 {
			d.Add(active(ledger.Receipt, 1, at))
		}
	}
	d.Add(active(ledger.ClosingCount, 100, 4))
	publishAll(d, 0)
	for _, c := range []struct {
		name          string
		before, after ledger.Payload
		want          []string
	}{
		{"up to a count", ledger.Payload{}, active(ledger.Receipt, 5, 2), []string{"@2 8<-2", "@3 9<-8", "@4 100<-9"}},
		{"its removal", active(ledger.Receipt, 5, 2), ledger.Payload{}, []string{"@2 3<-2", "@3 4<-3", "@4 100<-4"}},
		{"on a day with a count", ledger.Payload{}, active(ledger.Receipt, 5, 4), []string{"@4 100<-4"}},
		{"moved to a new day", active(ledger.Receipt, 1, 5), active(ledger.Receipt, 1, 6), []string{"@5 gone", "@6 101<-100"}},
		{"moved over a count", active(ledger.Receipt, 1, 1), active(ledger.Receipt, 1, 8),
			[]string{"@1 gone", "@2 2<-1", "@3 3<-2", "@4 100<-3", "@8 104<-102", "@9 105<-104"}},
		{"moved back", active(ledger.Receipt, 1, 8), active(ledger.Receipt, 1, 1),
			[]string{"@1 2<-1", "@2 3<-2", "@3 4<-3", "@4 100<-4", "@8 103<-102", "@9 104<-103"}},
		{"the count itself", active(ledger.ClosingCount, 100, 4), active(ledger.ClosingCount, 50, 4),
			[]string{"@4 50<-4", "@6 51<-50", "@7 52<-51", "@8 53<-52", "@9 54<-53"}},
		{"within a day", active(ledger.Receipt, 1, 9), active(ledger.Receipt, 3, 9), []string{"@9 56<-53"}},
		{"a new first day", ledger.Payload{}, active(ledger.OpeningCount, 0, 0), []string{"@0 1<-0"}},
	} {
		touched := d.Move(c.before, c.after)
		if got := steps(d.Refold(0, touched)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		publishAll(d, 0)
	}
}

// TestExactSums: SC14; a sum beyond int64 is exact, and the day returns to its small form.
func TestExactSums(t *testing.T) {
	t.Parallel()
	const top = 1<<63 - 1
	d := New(origin)
	for range 5 {
		d.Add(active(ledger.Receipt, top, 0))
	}
	for range 7 {
		d.Add(active(ledger.Issue, top, 1))
	}
	if got := steps(d.Refold(0, Touched{})); !slices.Equal(got, []string{"@0 unrepresentable"}) {
		t.Errorf("%v", got)
	}
	for range 4 {
		d.Add(active(ledger.Issue, top, 0))
	}
	for range 6 {
		d.Add(active(ledger.Receipt, top, 1))
	}
	if got, want := steps(d.Refold(0, Touched{})), []string{"@0 9223372036854775807<-0", "@1 0<-9223372036854775807"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if len(d.rare) != 0 {
		t.Errorf("%d days have a side entry, none needs it", len(d.rare))
	}
	d.Add(active(ledger.Issue, top, 1)) // -2 * (2^63-1) on day 1
	if got, want := steps(d.Refold(-1, Touched{})), []string{"@0 9223372036854775806<--1", "@1 -9223372036854775808<-9223372036854775806"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	d.Add(active(ledger.Issue, 1, 1))
	if got, want := steps(d.Refold(-1, Touched{})), []string{"@0 9223372036854775806<--1", "@1 unrepresentable"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestLimitsOfClose: the ends of int64 fit, one past them does not, in both forms of a sum.
func TestLimitsOfClose(t *testing.T) {
	t.Parallel()
	const top = 1<<63 - 1
	for _, c := range []struct {
		opening int64
		moves   []ledger.Payload
		fits    bool
	}{
		{top - 1, []ledger.Payload{active(ledger.Receipt, 1, 0)}, true},
		{top, []ledger.Payload{active(ledger.Receipt, 1, 0)}, false},
		{-top, []ledger.Payload{active(ledger.Issue, 1, 0)}, true},
		{-top - 1, []ledger.Payload{active(ledger.Issue, 1, 0)}, false},
		{-top - 1, []ledger.Payload{active(ledger.Receipt, top, 0), active(ledger.Receipt, top, 0), active(ledger.Receipt, 1, 0)}, true},
		{-top - 1, []ledger.Payload{active(ledger.Receipt, top, 0), active(ledger.Receipt, top, 0), active(ledger.Receipt, 2, 0)}, false},
		{top, []ledger.Payload{active(ledger.Issue, top, 0), active(ledger.Issue, top, 0), active(ledger.Issue, 1, 0)}, true},
		{top, []ledger.Payload{active(ledger.Issue, top, 0), active(ledger.Issue, top, 0), active(ledger.Issue, 2, 0)}, false},
		{top, []ledger.Payload{active(ledger.Receipt, top, 0), active(ledger.ClosingCount, 5, 0)}, true},
		{top, []ledger.Payload{active(ledger.Receipt, 1, 0), active(ledger.OpeningCount, 5, 0)}, true},
		{0, []ledger.Payload{active(ledger.Receipt, 1, 0), active(ledger.OpeningCount, top, 0)}, false},
		{0, nil, true},
	} {
		d := New(origin)
		for _, p := range c.moves {
			d.Add(p)
		}
		cursor := d.Refold(c.opening, Touched{})
		for cursor.Next() {
		}
		if fits := cursor.Unrepresentable() == 0; fits != c.fits {
			t.Errorf("%d %+v: fits %v", c.opening, c.moves, fits)
		}
	}
}

// TestCounts: C24; counts are a multiset, each moment by itself.
func TestCounts(t *testing.T) {
	t.Parallel()
	d := New(origin)
	say := func(want int) {
		t.Helper()
		if day, disagree := d.Disagreement(); disagree != (want >= 0) || disagree && day != origin+ledger.Day(want) {
			t.Errorf("disagreement %v %v, want %d", day-origin, disagree, want)
		}
	}
	five, six, seven := active(ledger.ClosingCount, 5, 3), active(ledger.ClosingCount, 6, 3), active(ledger.ClosingCount, 7, 3)
	d.Add(five)
	d.Add(five)
	d.Add(active(ledger.OpeningCount, 6, 3))
	say(-1)
	d.Add(six)
	d.Add(seven)
	say(3)
	d.Remove(five)
	d.Remove(five)
	say(3)
	d.Add(active(ledger.OpeningCount, 0, 1))
	d.Add(active(ledger.OpeningCount, 1, 1))
	say(1)
	d.Remove(active(ledger.OpeningCount, 0, 1))
	say(3)
	d.Remove(seven)
	say(-1)
	if got, want := steps(d.Refold(9, Touched{})), []string{"@1 1<-9", "@3 6<-1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	d.Remove(six)
	d.Remove(active(ledger.OpeningCount, 6, 3))
	d.Remove(active(ledger.OpeningCount, 1, 1))
	if len(d.rare) != 0 || d.Last() != 0 {
		t.Errorf("%d side entries, last day %v", len(d.rare), d.Last())
	}
}

// TestEqualsNaive compares random days, inserted in any order, with sums over the list.
// Shows I13.
func TestEqualsNaive(t *testing.T) {
	t.Parallel()
	for seed := range uint64(pace.Of(60)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		span := []int{5, 200, 5_000, ledger.HorizonDays}[rng.IntN(4)]
		d := New(origin)
		var all []ledger.Payload
		for range 400 {
			if len(all) > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(len(all))
				d.Remove(all[i])
				all = slices.Delete(all, i, i+1)
				continue
			}
			p := active(ledger.Receipt+ledger.Kind(rng.IntN(4)), int64(1+rng.IntN(3)), rng.IntN(span))
			if rng.IntN(20) == 0 {
				p.Quantity = 1<<63 - 1
			}
			d.Add(p)
			all = append(all, p)
		}
		if err := d.check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkSums(t, seed, d, all)
	}
}

func checkSums(t *testing.T, seed uint64, d *Days, all []ledger.Payload) {
	t.Helper()
	sums, active := map[ledger.Day]*big.Int{}, map[ledger.Day]uint32{}
	for _, p := range all {
		if sums[p.Day] == nil {
			sums[p.Day] = new(big.Int)
		}
		active[p.Day]++
		switch q := big.NewInt(int64(p.Quantity)); p.Kind {
		case ledger.Receipt:
			sums[p.Day].Add(sums[p.Day], q)
		case ledger.Issue:
			sums[p.Day].Sub(sums[p.Day], q)
		}
	}
	for _, c := range d.chunks {
		for i := range c {
			e, day := &c[i], d.day(c[i].at)
			sum := new(big.Int).Lsh(big.NewInt(d.high(e)), 64)
			sum.Add(sum, new(big.Int).SetUint64(uint64(e.sum)))
			want := sums[day]
			if want == nil {
				want = new(big.Int)
			}
			if e.active != active[day] || sum.Cmp(want) != 0 {
				t.Fatalf("seed %d day %v: %d active, sum %v, want %d and %v", seed, day, e.active, sum, active[day], want)
			}
			delete(sums, day)
		}
	}
	if len(sums) > 0 {
		t.Fatalf("seed %d: %d days are missing", seed, len(sums))
	}
}

// check reports a broken rule of the representation.
func (d *Days) check() error {
	last, room := -1, 0
	for _, c := range d.chunks {
		if len(c) == 0 || len(c) > chunkDays {
			return fmt.Errorf("a chunk of %d days", len(c))
		}
		room += cap(c)
		for i := range c {
			e := &c[i]
			if int(e.at) <= last {
				return fmt.Errorf("day %d after %d", e.at, last)
			}
			last = int(e.at)
			if _, have := d.rare[e.at]; have != (e.flags&(flagWide|flagCounted|flagVersions) != 0) {
				return fmt.Errorf("day %d: flags %b, side entry %v", e.at, e.flags, have)
			}
		}
	}
	if room != d.room {
		return fmt.Errorf("room %d, counted %d", room, d.room)
	}
	return nil
}

// TestVersionsBeyond32Bits: SC43's neighbourhood; a version is exact up to 2^63-1.
func TestVersionsBeyond32Bits(t *testing.T) {
	t.Parallel()
	d := New(origin)
	want := Published{Close: -5, Balance: ledger.MaxCounter, Alert: 1 << 32, Present: true}
	d.Publish(origin+7, want)
	d.Publish(origin+8, Published{Balance: 1<<32 - 1, Alert: 1<<32 - 1, Alerted: true, Present: true})
	if got := d.Published(origin + 7); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if len(d.rare) != 1 {
		t.Errorf("%d side entries, want 1", len(d.rare))
	}
	if !d.Commit([]ledger.Change{{Kind: ledger.Balance, Day: origin + 8, Version: 1 << 32}, {Kind: ledger.Alert, Day: origin + 8, Version: 1 << 32}}) {
		t.Error("the next version is no continuation")
	}
	if got, want := d.Published(origin+8), (Published{Balance: 1 << 32, Alert: 1 << 32}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestCommitRefuses what is no continuation (I5).
func TestCommitRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]ledger.Change{
		"a repeated version":         {Kind: ledger.Balance, Day: origin, Version: 3, Present: true, Close: 9},
		"a gap":                      {Kind: ledger.Balance, Day: origin, Version: 5, Present: true, Close: 9},
		"the same close":             {Kind: ledger.Balance, Day: origin, Version: 4, Present: true, Close: 8},
		"a withdrawal of nothing":    {Kind: ledger.Balance, Day: origin + 1, Version: 1},
		"an alert withdrawn twice":   {Kind: ledger.Alert, Day: origin, Version: 3},
		"a first version that is 2":  {Kind: ledger.Balance, Day: origin + 1, Version: 2, Present: true},
		"an alert's first that is 0": {Kind: ledger.Alert, Day: origin + 1, Version: 0, Present: true},
	} {
		d := New(origin)
		d.Publish(origin, Published{Close: 8, Balance: 3, Alert: 2, Present: true})
		if d.Commit([]ledger.Change{c}) {
			t.Errorf("%s was accepted", name)
		}
	}
}

// TestManyDays: 36,525 days entered in descending, ascending and random order; quadratic shifting would take seconds.
func TestManyDays(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(int) int{
		"ascending":  func(i int) int { return i },
		"descending": func(i int) int { return ledger.HorizonDays - 1 - i },
		"random":     func(i int) int { return i * 7919 % ledger.HorizonDays },
	} {
		d := New(origin)
		for i := range ledger.HorizonDays {
			d.Add(active(ledger.Receipt, 1, order(i)))
		}
		if err := d.check(); err != nil || d.Len() != ledger.HorizonDays {
			t.Errorf("%s: %d days, %v", name, d.Len(), err)
		}
		c := d.Refold(0, Touched{})
		for c.Next() {
		}
		if c.Step.Close != ledger.HorizonDays || c.Refolded() != ledger.HorizonDays {
			t.Errorf("%s: close %d after %d days", name, c.Step.Close, c.Refolded())
		}
	}
}

// TestMemory: 32 bytes a day, and at most 48 with all overhead for a month, a year and a decade entered in order.
func TestMemory(t *testing.T) {
	t.Parallel()
	if n := unsafe.Sizeof(day{}); n != dayBytes {
		t.Fatalf("a day is %d bytes", n)
	}
	for _, n := range []int{30, 365, 3650} {
		d := New(origin)
		for at := range n {
			d.Add(active(ledger.Receipt, 1, at))
		}
		if per := float64(d.Bytes()) / float64(n); per > 48 {
			t.Errorf("%d days: %.1f bytes a day", n, per)
		}
	}
}

func BenchmarkRefold(b *testing.B) {
	d := New(origin)
	for at := range 365 {
		d.Add(active(ledger.Receipt, 1, at))
	}
	for b.Loop() {
		c := d.Refold(0, Touched{})
		for c.Next() {
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/365, "ns/day")
}

func BenchmarkLastDay(b *testing.B) {
	d := New(origin)
	for at := range 365 {
		d.Add(active(ledger.Receipt, 1, at))
	}
	publishAll(d, 0)
	p := active(ledger.Issue, 1, 364)
	for b.Loop() {
		d.Move(ledger.Payload{}, p)
		d.Move(p, ledger.Payload{})
		c := d.Refold(0, Touched{p.Day, p.Day})
		for c.Next() {
		}
	}
}
