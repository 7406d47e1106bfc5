package drill

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"amends/internal/pace"
	"amends/internal/programtest"
)

// site runs command lines in a directory of its own, with one environment. The program has the race detector in it where the tests
// have it: a process that saw a race ends with code 66.
type site struct {
	*programtest.Shell
	t testing.TB
}

func newSite(t testing.TB) *site {
	t.Helper()
	return &site{Shell: programtest.Built(t, pace.Raced), t: t}
}

// run runs a command that must end with the code, and returns what it printed on stdout and its last word on stderr.
func (s *site) run(code int, args string) (stdout, last string) {
	s.t.Helper()
	a := s.Must(code, "", "amends "+args)
	return a.Stdout, a.Cause()
}

// process is a role in the background.
type process struct {
	*programtest.Process
	t testing.TB
}

// start starts a process, behind the words of a wrapper if there are any; the test's end kills it.
func (s *site) start(args string, wrapper ...string) *process {
	s.t.Helper()
	return &process{Process: s.Start("amends "+args, wrapper...), t: s.t}
}

// role starts one role of the bound manifest.
func (s *site) role(name string, flags ...string) *process {
	s.t.Helper()
	return s.start(strings.Join(append([]string{"run -manifest pipeline.json -role", name}, flags...), " "))
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("%s: %v", p.Line, err)
	}
}

// pause stops the process by SIGSTOP and waits until it stands still.
func (p *process) pause() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	await(p.t, p.Line+" stands still", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Cmd.Process.Pid))
		if err != nil {
			p.t.Fatal(err)
		}
		return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[0] == "T"
	})
}

func (p *process) resume() { p.t.Helper(); p.signal(syscall.SIGCONT) }

// stop sends SIGTERM to a role that has said that it starts: before that it has no handler for it. The process must end with
// code 0. It returns how long that took.
func (p *process) stop() time.Duration {
	p.t.Helper()
	await(p.t, p.Line+" says that it starts", func() bool { return p.Ended() || strings.Contains(p.Stderr.String(), "roles start") })
	began := time.Now()
	p.signal(syscall.SIGTERM)
	p.ends(0, "")
	return time.Since(began)
}

// unreadable is after how long a commit in flight whose outcome could not be read ends its process with 12 (S12).
const unreadable = 20 * time.Second

// refused waits for a process that was apart from its services since about then, and was overtaken: it ends with 10, or with 12 where
// the time of a commit in flight was over before its outcome could be read, which may be a moment after the services were back.
func (p *process) refused(apart time.Time) (code int) {
	p.t.Helper()
	a := p.Wait()
	if since := time.Since(apart); a.Code != 10 && (a.Code != 12 || since < unreadable) {
		p.t.Errorf("%s: code %d %v after it was cut off, want 10\n%s", p.Line, a.Code, since, p.Stderr.Last(10))
	}
	return a.Code
}

// ownership finds what a source process says of its partitions.
var ownership = regexp.MustCompile(`msg="partition(?:s)? (claimed|revoked|lost)".* partitions?="?\[?([0-9 ]+)`)

// owns reports whether a source process has partitions, by its own words.
func (p *process) owns() bool {
	owned := map[string]bool{}
	for _, m := range ownership.FindAllStringSubmatch(p.Stderr.String(), -1) {
		for _, partition := range strings.Fields(m[2]) {
			owned[partition] = m[1] == "claimed"
		}
	}
	for _, mine := range owned {
		if mine {
			return true
		}
	}
	return false
}

// ends waits for the process, which must end with the code and name the cause in its last line.
func (p *process) ends(code int, cause string) { p.t.Helper(); p.EndsWithin(code, cause, deadline) }
