package watch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/store"
	"amends/internal/usage"
)

// buffer may be read while it is written to.
type buffer struct {
	b  bytes.Buffer
	mu sync.Mutex
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// watched runs a command whose rounds are given by round, numbered from 1; it is stopped in the round after the last.
func watched(t *testing.T, out io.Writer, rounds int, round func(n int, w io.Writer) error, args ...string) (stderr string, err error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var said buffer
	e := &target.Env{Stdout: out, Stderr: &said, Getenv: func(string) string { return "" }, Program: "amends"}
	n := 0
	cmd := &cobra.Command{Use: "show", Args: cobra.ArbitraryArgs, SilenceErrors: true, SilenceUsage: true, RunE: func(_ *cobra.Command, args []string) error {
		if n++; n > rounds {
			stop()
			return ctx.Err()
		}
		if len(args) > 0 {
			fmt.Fprintln(e.Stdout, args)
		}
		return round(n, e.Stdout)
	}}
	e.OutputFlag(cmd)
	watch.Wrap(e, cmd)
	cmd.SetArgs(usage.Rewrite(args))
	err = cmd.ExecuteContext(ctx)
	if e.Stdout != out {
		t.Error("the command's stdout was not given back")
	}
	return said.String(), err
}

// withoutTimes replaces every time of day.
func withoutTimes(text string) string {
	words := strings.Fields(strings.ReplaceAll(text, "\n", " ⏎ "))
	for i, w := range words {
		if _, err := time.Parse(time.RFC3339, strings.TrimSuffix(w, ":")); err == nil {
			words[i] = "TIME"
		}
	}
	return strings.Join(words, " ")
}

func TestWithoutTheFlagACommandRunsOnce(t *testing.T) {
	t.Parallel()
	var out buffer
	bad := errors.New("bad")
	if _, err := watched(t, &out, 1, func(_ int, w io.Writer) error { fmt.Fprint(w, "x"); return bad }); !errors.Is(err, bad) || out.String() != "x" {
		t.Error(out.String(), err)
	}
}

func TestRoundsOfTextAreSeparated(t *testing.T) {
	t.Parallel()
	var out buffer
	stderr, err := watched(t, &out, 2, func(n int, w io.Writer) error { fmt.Fprintf(w, "answer %d\n", n); return nil }, "-watch", "100ms", "widget")
	if want := "-- TIME ⏎ [widget] ⏎ answer 1 ⏎ -- TIME ⏎ [widget] ⏎ answer 2 ⏎"; err != nil || stderr != "" || withoutTimes(out.String()) != want {
		t.Errorf("%v %q %q", err, stderr, out.String())
	}
}

func TestRoundsOfJSONAreOneObjectEach(t *testing.T) {
	t.Parallel()
	var out buffer
	_, err := watched(t, &out, 3, func(n int, w io.Writer) error {
		fmt.Fprintf(w, `{"n":%d`, n)
		if n == 2 {
			return errors.New("half an object")
		}
		fmt.Fprint(w, "}")
		return nil
	}, "-watch=100ms", "-o", "json")
	if err != nil || out.String() != "{\"n\":1}\n{\"n\":3}\n" {
		t.Errorf("%v %q", err, out.String())
	}
}

// The code of a round, an outage and a refusal that comes later are shown and waited for; each once while it lasts.
func TestLaterFailuresAreWaitedFor(t *testing.T) {
	t.Parallel()
	var out buffer
	stderr, err := watched(t, &out, 5, func(n int, w io.Writer) error {
		switch n {
		case 1, 2:
			return fmt.Errorf("open database: %w", store.ErrUnavailable)
		case 4:
			return store.ErrNoSchema
		}
		fmt.Fprintln(w, "blocked keys 1")
		return errors.New("status BLOCKED")
	}, "-watch", "100ms")
	if err != nil || withoutTimes(out.String()) != "-- TIME ⏎ blocked keys 1 ⏎ -- TIME ⏎ blocked keys 1 ⏎" {
		t.Errorf("%v %q", err, out.String())
	}
	want := "TIME open database: database unavailable ⏎ TIME status BLOCKED ⏎ TIME " + store.ErrNoSchema.Error() + " ⏎ TIME status BLOCKED ⏎"
	if got := withoutTimes(stderr); got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
}

func TestTheFirstRoundMustAnswer(t *testing.T) {
	t.Parallel()
	var out buffer
	if _, err := watched(t, &out, 9, func(int, io.Writer) error { return store.ErrNoNamespace }, "-watch"); !errors.Is(err, store.ErrNoNamespace) || out.String() != "" {
		t.Error(out.String(), err)
	}
	var wrong *usage.Error
	for _, interval := range []string{"0s", "99ms", "25h", "-1s"} {
		if _, err := watched(t, &out, 9, func(int, io.Writer) error { return nil }, "-watch", interval); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", interval, err)
		}
	}
}

func TestATerminalIsPaintedOver(t *testing.T) {
	t.Parallel()
	user, program := terminal(t, 6)
	_, err := watched(t, program, 3, func(n int, w io.Writer) error {
		if n == 2 {
			return store.ErrUnavailable
		}
		fmt.Fprint(w, "1\n2\n3\n4\n5\n6\n")
		return nil
	}, "-watch", "100ms")
	program.Close()
	if err != nil {
		t.Fatal(err)
	}
	var frames []string
	for _, f := range strings.Split(user(), "\x1b[?7l\x1b[H")[1:] {
		f, _, _ = strings.Cut(f, "\x1b[J\x1b[?7h")
		frames = append(frames, withoutTimes(strings.ReplaceAll(strings.ReplaceAll(f, "\x1b[K", ""), "\r", "")))
	}
	whole := "show every 100ms, TIME ⏎ ⏎ 1 ⏎ 2 ⏎ 3 ⏎ … 3 more lines"
	stale := "show every 100ms, TIME ⏎ database unavailable ⏎ the answer of TIME ⏎ 1 ⏎ 2 ⏎ … 4 more lines"
	if want := []string{whole, stale, whole}; fmt.Sprint(frames) != fmt.Sprint(want) {
		t.Errorf("frames\n%s", strings.Join(frames, "\n"))
	}
}

// terminal opens a pseudo terminal of that height; the function returns everything written to it once it is closed.
func terminal(t *testing.T, height uint16) (written func() string, program *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: 80})
	}
	if err != nil {
		t.Fatal(err)
	}
	if program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	text := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(master) // EIO once the program's side is closed
		text <- string(b)
	}()
	return func() string { return <-text }, program
}
