package choice

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSourceReplaysItsAnswers(t *testing.T) {
	ask := func(s *Source) []byte {
		for i := range 100 {
			s.One(1 + i%7)
			s.Seldom(5, 300)
		}
		return slices.Clone(s.Taken())
	}
	first := ask(Random(7))
	if again := ask(Replay(first)); !bytes.Equal(first, again) {
		t.Errorf("replayed %v, want %v", again, first)
	}
	s := Random(1)
	ask(s)
	s.Reset(7)
	if again := ask(s); !bytes.Equal(first, again) {
		t.Errorf("after Reset %v, want %v", again, first)
	}
	if zeros := ask(Replay(nil)); slices.Max(zeros) != 0 {
		t.Errorf("past the end %v", zeros)
	}
}

func TestSeldom(t *testing.T) {
	s, set := Random(3), 0
	for range 10_000 {
		if s.Seldom(4, 100) > 0 {
			set++
		}
	}
	if set < 850 || set > 1_150 {
		t.Errorf("%d of 10000 at 100 per mille", set)
	}
}

// Every list once, in order: two questions of which the second depends on the first.
func TestExplore(t *testing.T) {
	var got []string
	n := Explore(func(s *Source) bool {
		s.One(2 + s.One(3))
		got = append(got, string([]byte{'0' + s.Taken()[0], '0' + s.Taken()[1]}))
		return true
	})
	if want := "00 01 10 11 12 20 21 22 23"; strings.Join(got, " ") != want || n != 9 {
		t.Errorf("%d: %v, want %s", n, got, want)
	}
	if n := Explore(func(*Source) bool { return false }); n != 1 {
		t.Errorf("ended after %d", n)
	}
}

// What is left fails, and no single answer can be left out or made smaller.
func TestShrinkIsMinimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.ByteRange(0, 9), 3, 40).Draw(t, "list")
		at := rapid.SliceOfNDistinct(rapid.IntRange(0, len(list)-1), 1, 3, rapid.ID[int]).Draw(t, "at")
		var want []byte
		slices.Sort(at)
		for _, i := range at {
			want = append(want, list[i])
		}
		fails := func(l []byte) bool { // holds want as a subsequence
			i := 0
			for _, b := range l {
				if i < len(want) && b == want[i] {
					i++
				}
			}
			return i == len(want)
		}
		got := Shrink(list, 10_000, fails)
		for len(want) > 0 && want[len(want)-1] == 0 {
			want = want[:len(want)-1]
		}
		if !fails(append(slices.Clone(got), make([]byte, 40)...)) {
			t.Fatalf("%v does not fail", got)
		}
	})
}

func TestShrinkLeavesOnlyWhatMatters(t *testing.T) {
	list := []byte{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5}
	got := Shrink(list, 10_000, func(l []byte) bool { return slices.Contains(l, 9) && slices.Contains(l, 4) })
	if !bytes.Equal(got, []byte{4, 9}) {
		t.Errorf("%v", got)
	}
}

func TestScenarioFiles(t *testing.T) {
	s := Scenario{Note: "what it showed\nin one line", Answers: slices.Repeat([]byte{0, 7, 255}, 30)}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&b)
	if err != nil || got.Note != "what it showed in one line" || !bytes.Equal(got.Answers, s.Answers) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"1 2 x", "256", "-1"} {
		var syntax *SyntaxError
		if _, err := Read(strings.NewReader("# note\n" + bad)); !errors.As(err, &syntax) || syntax.Line != 2 {
			t.Errorf("%q: %v", bad, err)
		}
	}
	name := filepath.Join(t.TempDir(), "bad.txt")
	if _, err := ReadFile(name); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), name) {
		t.Error(err)
	}
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var syntax *SyntaxError
	if _, err := ReadFile(name); !errors.As(err, &syntax) || !strings.Contains(err.Error(), name) {
		t.Error(err)
	}
}
