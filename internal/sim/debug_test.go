package sim

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"amends/internal/sim/choice"
)

func TestDebug(t *testing.T) {
	v := os.Getenv("SIM_SEED")
	if v == "" {
		return
	}
	seed, _ := strconv.ParseUint(v, 10, 64)
	c, err := NewCorpus()
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Play(choice.Random(seed), true)
	if err != nil {
		t.Fatal(err)
	}
	want := r.Violation
	if want == nil {
		t.Fatal("no violation")
	}
	list := append([]byte{}, r.Answers...)
	n := 0
	list = choice.Shrink(list, 5000, func(b []byte) bool {
		n++
		r, err := c.Play(choice.Replay(b), false)
		return err == nil && r.Violation != nil && r.Violation.Invariant == want.Invariant
	})
	r, _ = c.Play(choice.Replay(list), true)
	t.Logf("after %d: %v\n%v\n%s", n, list, r.Violation, strings.Join(r.Trace[:min(len(r.Trace), 300)], "\n"))
}
