package drill

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A process whose network is cut: all its roles stand still or retry, a standby outside takes over, and when the network is
// back the process is refused, unless the cut was so long that a commit in flight ended it before. Once connections break, once
// they stand and nothing arrives.
func TestNetworkCut(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*network){"severed": (*network).sever, "silent": (*network).silence} {
		t.Run(name, func(t *testing.T) {
			s := newSpace(t, shape{2, 3})
			n := s.newNetwork()
			inside := s.start("run -manifest pipeline.json", n.enter()...)
			st := s.stream(uint64(len(name)), 100)
			s.moves("the first records", shown, 0)
			before := map[string]int64{}
			for _, role := range roles() {
				before[role] = s.number(terms(role))
			}
			began := time.Now()
			cut(n)
			outside := s.start("run -manifest pipeline.json")
			var took []string
			for _, role := range roles() {
				s.moves("the "+role+" outside", terms(role), before[role])
				took = append(took, fmt.Sprintf("%s %.1f s", role, time.Since(began).Seconds()))
			}
			at := s.number(shown)
			s.moves("new rows by the process outside", shown, at)
			apart := time.Since(began)
			n.heal()
			code := inside.refused(began)
			st.stop()
			found := s.check(st)
			s.undisturbed()
			outside.stop()
			figure(t, "takeover after a cut, the start of a process included: %s; refused with code %d after %.0f s; %v", strings.Join(took, ", "), code, apart.Seconds(), found)
		})
	}
}

// A network that is gone for a while with nobody to take over: what was cut off goes on by itself, or ends with a code that
// says that a start is safe, and nothing is lost.
// Shows F10.
func TestNetworkAwayAndBack(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shape{2, 3})
	n := s.newNetwork()
	inside := s.start("run -manifest pipeline.json", n.enter()...)
	st := s.stream(3, 100)
	s.moves("the first records", shown, 0)
	ended := 0
	for i, cut := range []func(){n.sever, n.silence, n.sever} {
		time.Sleep(200 * time.Millisecond)
		cut()
		time.Sleep(time.Duration(1+2*i) * time.Second)
		n.heal()
		at := s.number(shown)
		await(t, "rows after the cut", func() bool {
			if inside.Ended() {
				if code := inside.Cmd.ProcessState.ExitCode(); code != 1 && code != 10 && code != 12 {
					t.Fatalf("code %d\n%s", code, inside.Stderr.Last(10))
				}
				ended++
				inside = s.start("run -manifest pipeline.json", n.enter()...)
			}
			return s.number(shown) > at
		})
	}
	st.stop()
	found := s.check(st)
	s.undisturbed()
	inside.stop()
	figure(t, "3 cuts, %d ends with a safe code; %v", ended, found)
}
