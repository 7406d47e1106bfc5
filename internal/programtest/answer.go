package programtest

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Answer is what a command ended with.
type Answer struct {
	Stdout, Stderr string
	Code           int
}

// First is the first line on stdout.
func (a Answer) First() string {
	line, _, _ := strings.Cut(a.Stdout, "\n")
	return line
}

// Cause is the last line on stderr.
func (a Answer) Cause() string {
	lines := strings.Split(strings.TrimSpace(a.Stderr), "\n")
	return lines[len(lines)-1]
}

// Is reports whether a command ended with the code and its cause holds those words.
func (a Answer) Is(code int, cause string) bool {
	return a.Code == code && strings.Contains(a.Cause(), cause)
}

// Text collects what a command writes; it may be read meanwhile.
type Text struct {
	b  bytes.Buffer
	mu sync.Mutex
}

// Write adds to the text; it never fails.
func (x *Text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(p)
}

// String returns what was written so far.
func (x *Text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

// Last returns the last n lines.
func (x *Text) Last(n int) string {
	lines := strings.Split(strings.TrimRight(x.String(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Await waits until something holds.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Deadline); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", Deadline, what)
		}
	}
}
