package progress

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// stage is a screen of a given width under a clock that the test moves.
type stage struct {
	out bytes.Buffer
	at  time.Time
	*Screen
}

func newStage(width int, color bool) *stage {
	s := &stage{at: time.Unix(1_000, 0)}
	s.Screen = &Screen{out: &s.out, width: func() int { return width }, now: func() time.Time { return s.at }, color: color}
	return s
}

func (s *stage) take() string {
	defer s.out.Reset()
	return s.out.String()
}

func TestShortWorkShowsNothing(t *testing.T) {
	for _, width := range []int{0, 80} {
		s := newStage(width, true)
		b := s.Start("load", "records", 100)
		s.at = s.at.Add(999 * time.Millisecond)
		b.Set(100)
		b.Done()
		if got := s.take(); got != "" {
			t.Errorf("width %d: %q", width, got)
		}
	}
}

func TestPlainLinesComeEveryTenSecondsAndEndWithOne(t *testing.T) {
	s := newStage(0, true)
	b := s.Start("load", "records", 100_000)
	for range 25 { // 25 s, 1,000 records each
		s.at = s.at.Add(time.Second)
		b.Add(1000)
	}
	b.Done()
	b.Done()
	want := "load: 10,000 of 100,000 records, 10%, 1,000/s, 1m30s left\n" +
		"load: 20,000 of 100,000 records, 20%, 1,000/s, 1m20s left\n" +
		"load: 25,000 of 100,000 records in 25s, 1,000/s\n"
	if got := s.take(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.Add(1)
	if got := s.take(); got != "" {
		t.Errorf("after its end: %q", got)
	}
}

func TestLiveLineIsRedrawnAndReplacedByOneLine(t *testing.T) {
	s := newStage(100, false)
	b := s.Start("load", "records", 1000)
	s.at = s.at.Add(2 * time.Second)
	b.Set(250)
	if got, want := s.take(), "\r\x1b[Kload  25%  [======                  ]  250 of 1,000 records  125/s  6s left"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.at = s.at.Add(99 * time.Millisecond)
	b.Set(260)
	if got := s.take(); got != "" {
		t.Errorf("drawn again after 99 ms: %q", got)
	}
	b.Hide()
	if got := s.take(); got != "\r\x1b[K" {
		t.Errorf("hide wrote %q", got)
	}
	s.at = s.at.Add(1901 * time.Millisecond)
	b.Set(1000)
	if got := s.take(); !strings.Contains(got, "100%  [========================]") || strings.Contains(got, "left") {
		t.Errorf("at the end: %q", got)
	}
	b.Done()
	if got := s.take(); got != "\r\x1b[Kload: 1,000 records in 4s, 250/s\n" {
		t.Errorf("last line %q", got)
	}
}

// At any width the line fits in one row, so that a redraw never leaves rests of it behind.
func TestLiveLineFitsEveryWidth(t *testing.T) {
	for width := 1; width <= 120; width++ {
		s := newStage(width, true)
		b := s.Start("publish", "records", 123_456_789)
		s.at = s.at.Add(time.Hour)
		b.Set(1_234_567)
		line := strings.NewReplacer("\r\x1b[K", "", green, "", plain, "").Replace(s.take())
		if n := utf8.RuneCountInString(line); n > max(width-1, 0) {
			t.Errorf("width %d: %d columns: %q", width, n, line)
		}
	}
}

func TestColourOnlyWhereAllowed(t *testing.T) {
	for _, color := range []bool{true, false} {
		s := newStage(120, color)
		b := s.Start("load", "records", 10)
		s.at = s.at.Add(2 * time.Second)
		b.Set(5)
		if got := s.take(); strings.Contains(got, green) != color {
			t.Errorf("colour %v: %q", color, got)
		}
	}
	env := map[string]string{"NO_COLOR": "1"}
	if On(os.Stderr, func(k string) string { return env[k] }).color || !On(os.Stderr, func(string) string { return "" }).color {
		t.Error("NO_COLOR is not respected")
	}
}

func TestUnknownTotalsAndBytes(t *testing.T) {
	s := newStage(80, false)
	b := s.Start("read", "bytes", 0)
	s.at = s.at.Add(4 * time.Second)
	b.Set(2_000_000_000)
	if got := s.take(); got != "\r\x1b[Kread  2.0 GB  500.0 MB/s" {
		t.Errorf("%q", got)
	}
	b.SetTotal(4_000_000_000)
	s.at = s.at.Add(time.Second)
	b.Set(2_500_000_000)
	if got := s.take(); !strings.Contains(got, "2.5 GB of 4.0 GB  500.0 MB/s  3s left") {
		t.Errorf("%q", got)
	}
}

// What was done before a resumed piece of work is part of the total and not of the rate.
func TestResumedWorkHasItsOwnRate(t *testing.T) {
	s := newStage(0, false)
	b := s.Start("load", "records", 1000)
	b.From(900)
	s.at = s.at.Add(10 * time.Second)
	b.Add(50)
	if got := s.take(); got != "load: 950 of 1,000 records, 95%, 5.0/s, 10s left\n" {
		t.Errorf("%q", got)
	}
}

func TestNoWorkAndTooMuch(t *testing.T) {
	s := newStage(0, false)
	b := s.Start("load", "records", 10)
	s.at = s.at.Add(10 * time.Second)
	b.Set(0)
	if got := s.take(); got != "load: 0 of 10 records, 0%\n" {
		t.Errorf("%q", got)
	}
	s.at = s.at.Add(10 * time.Second)
	b.Set(12)
	if got := s.take(); got != "load: 12 of 10 records, 100%, 0.6/s\n" {
		t.Errorf("%q", got)
	}
	var none *Bar
	none.From(1)
	none.Add(1)
	none.Set(1)
	none.SetTotal(1)
	none.Hide()
	none.Done()
}

func TestFilesAndBuffersAreNoTerminals(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	none := func(string) string { return "" }
	if On(f, none).Live() || On(&bytes.Buffer{}, none).Live() {
		t.Error("shown live")
	}
}

func TestManyGoroutines(t *testing.T) {
	s := newStage(0, false)
	b := s.Start("load", "records", 8000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				b.Add(1)
			}
		})
	}
	wg.Wait()
	if b.done != 8000 {
		t.Errorf("done %d", b.done)
	}
}

func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 59 * time.Second: "59s", 200 * time.Second: "3m20s", 7500 * time.Second: "2h05m"} {
		if got := span(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestStagesFollowEachOther(t *testing.T) {
	s := newStage(0, false)
	w := s.Stages(map[string]string{"check": "bytes", "publish": "records"})
	w.Hide()
	w.Report("check", 0, 4000)
	for _, step := range []struct {
		stage       string
		done, total int64
	}{{"check", 1000, 4000}, {"publish", 0, 20}, {"publish", 10, 20}} {
		s.at = s.at.Add(10 * time.Second)
		w.Report(step.stage, step.done, step.total)
	}
	w.Done()
	want := "check: 1.0 kB of 4.0 kB, 25%, 100 bytes/s, 30s left\n" +
		"check: 1.0 kB of 4.0 kB in 20s, 50 bytes/s\n" + // that stage ended when the next began
		"publish: 10 of 20 records, 50%, 1.0/s, 10s left\n" +
		"publish: 10 of 20 records in 10s, 1.0/s\n"
	if got := s.take(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
