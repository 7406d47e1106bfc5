package watch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"amends/internal/usage"
)

// Control sequences of ECMA-48 that every terminal of today has.
const (
	home      = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
	noWrap    = "\x1b[?7l"
	wrap      = "\x1b[?7h"
)

// screen is a terminal that is painted over. Nothing is kept of earlier rounds.
type screen struct {
	out    io.Writer
	height func() int // lines, 0 if unknown
}

// screenOf returns the screen of a stream, nil if it is none.
func screenOf(out io.Writer, getenv func(string) string) *screen {
	f, ok := out.(*os.File)
	if !ok || getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &screen{out: f, height: func() int {
		_, h, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0
		}
		return h
	}}
}

// paint shows the last answer from the top left corner, cut to the screen, under a line that says what it is. After a
// failure it also says what failed, and of when the answer is.
func (s *screen) paint(w *watcher, began time.Time, failure error) error {
	head := []string{fmt.Sprintf("%s  every %v, %s", w.title, w.interval, clock(began)), ""}
	if failure != nil && !w.at.Equal(began) {
		head[1] = usage.OneLine(failure)
		if len(w.last) > 0 {
			head = append(head, "the answer of "+clock(w.at)+":")
		}
	}
	lines := append(head, strings.Split(strings.TrimRight(string(w.last), "\n"), "\n")...)
	if h := s.height(); h > len(head)+1 && len(lines) > h {
		hidden := len(lines) - h + 1
		lines = append(lines[:h-1], fmt.Sprintf("… %d more lines", hidden))
	}
	var frame bytes.Buffer
	frame.WriteString(noWrap + home)
	for i, line := range lines {
		if i > 0 {
			frame.WriteString("\r\n")
		}
		frame.WriteString(line + clearLine)
	}
	frame.WriteString(clearRest + wrap)
	_, err := s.out.Write(frame.Bytes())
	return err
}

// leave puts what comes next under the last answer.
func (s *screen) leave() { fmt.Fprintln(s.out) }
