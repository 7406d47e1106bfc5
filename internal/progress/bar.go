package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// How often what is shown.
const (
	quiet      = time.Second            // shorter work shows nothing
	redraw     = 100 * time.Millisecond // of a live line
	plainEvery = 10 * time.Second       // between plain lines
)

// Screen is where progress is shown.
type Screen struct {
	out   io.Writer
	width func() int // columns, 0 where out is no terminal
	now   func() time.Time
	color bool
}

// On returns the screen of a stream: live lines if it is a terminal (and TERM is not dumb), colours unless NO_COLOR is set.
func On(out io.Writer, getenv func(string) string) *Screen {
	width := func() int { return 0 }
	if f, ok := out.(*os.File); ok && getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd())) {
		width = func() int {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
				return w
			}
			return 80
		}
	}
	return &Screen{out: out, width: width, now: time.Now, color: getenv("NO_COLOR") == ""}
}

// Live reports whether the screen is a terminal with a live line.
func (s *Screen) Live() bool { return s.width() > 0 }

// Start begins a piece of work. What is a word or two, unit the plural of what is counted ("bytes" are shown in kB, MB
// and GB). Total is how many there will be, 0 or less where nobody knows.
func (s *Screen) Start(what, unit string, total int64) *Bar {
	now := s.now()
	return &Bar{screen: s, what: what, unit: unit, total: total, began: now, shown: now}
}

// Bar is one piece of work. Its methods may be called by many goroutines; a nil Bar shows nothing.
type Bar struct {
	began   time.Time
	shown   time.Time // when the last line was written
	screen  *Screen
	what    string
	unit    string
	total   int64
	base    int64 // done before the work began
	done    int64
	mu      sync.Mutex
	visible bool // a live line is on the screen
	said    bool // anything was shown
	ended   bool
}

// From says how much was done before the work began, so that the rate does not count it.
func (b *Bar) From(done int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.base, b.done = done, done
}

// Add counts n more.
func (b *Bar) Add(n int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += n
	b.show()
}

// Set says how many are done in all.
func (b *Bar) Set(done int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = done
	b.show()
}

// SetTotal changes the total, 0 or less where nobody knows.
func (b *Bar) SetTotal(total int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total = total
}

// Hide takes the live line off the screen, before something else is written to the same terminal. The next change
// shows it again.
func (b *Bar) Hide() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
}

// Done ends the work, finished or not. Where anything was shown one line stays: how much, in what time. Calling it again
// does nothing.
func (b *Bar) Done() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	b.ended = true
	b.clear()
	if b.said {
		b.write(b.summary(b.screen.now().Sub(b.began)) + "\n")
	}
}

// show writes what the time allows.
func (b *Bar) show() {
	if b.ended {
		return
	}
	now := b.screen.now()
	elapsed := now.Sub(b.began)
	width := b.screen.width()
	switch {
	case elapsed < quiet:
	case width > 0 && (!b.said || now.Sub(b.shown) >= redraw):
		b.write("\r\x1b[K" + b.live(elapsed, width-1))
		b.visible, b.said, b.shown = true, true, now
	case width == 0 && now.Sub(b.shown) >= plainEvery:
		b.write(b.plain(elapsed) + "\n")
		b.said, b.shown = true, now
	}
}

func (b *Bar) clear() {
	if b.visible {
		b.write("\r\x1b[K")
		b.visible = false
	}
}

// write ignores the stream's errors: progress is no result.
func (b *Bar) write(s string) { _, _ = fmt.Fprint(b.screen.out, s) }
