package operator

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"amends/internal/programtest"
)

// commands returns every command of a program that does something, as the words that call it.
func commands(t *testing.T, s *shell, words ...string) [][]string {
	t.Helper()
	a := s.words(append(slices.Clone(words), "-help")...)
	_, list, _ := strings.Cut(a.Stdout, "\nCommands:\n")
	var all [][]string
	for _, line := range strings.Split(list, "\n") {
		if strings.TrimSpace(line) == "" {
			break
		}
		all = append(all, commands(t, s, append(slices.Clone(words), strings.Fields(line)[0])...)...)
	}
	if all == nil {
		all = [][]string{words}
	}
	return all
}

// Every command and topic of both programs has its page, which shows what -help shows and which man takes without a warning.
func TestEveryCommandHasItsManualPage(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	man := manDB(t)
	for _, program := range []string{"amends", "amendsctl"} {
		s.call(0, program+" man -dir @"+program)
		all := commands(t, s, program)
		if len(all) < 15 {
			t.Fatalf("%s has %d commands", program, len(all))
		}
		for _, words := range all {
			b, err := os.ReadFile(s.Path(program + "/man1/" + strings.Join(words, "-") + ".1"))
			if err != nil {
				t.Error(err)
				continue
			}
			if !strings.Contains(string(b), "\n.SH NAME\n") || !strings.Contains(string(b), "\n.SH SYNOPSIS\n.B "+strings.ReplaceAll(strings.Join(words, " "), "-", `\-`)+"\n") {
				t.Errorf("%v: %s", words, b)
			}
		}
		pages, err := filepath.Glob(s.Path(program + "/man?/*"))
		if err != nil || len(pages) < len(all)+3 {
			t.Fatalf("%d pages, %v", len(pages), err)
		}
		for _, page := range pages {
			if man == "" {
				break // the pages' form is looked at above; not every machine has this man
			}
			cmd := exec.CommandContext(t.Context(), man, "--warnings", "-l", page)
			cmd.Env = append(os.Environ(), "MANPAGER=cat", "LC_ALL=C.UTF-8")
			var stdout, stderr programtest.Text
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil || stderr.String() != "" || len(stdout.String()) < 200 {
				t.Errorf("%s: %v %s%s", page, err, &stderr, &stdout)
			}
		}
	}
}

// manDB finds the man that knows these flags: others do not, nor does what stands in for it where documentation was taken out.
func manDB(t *testing.T) string {
	t.Helper()
	man, err := exec.LookPath("man")
	if err != nil {
		return ""
	}
	if out, err := exec.CommandContext(t.Context(), man, "--version").Output(); err != nil || !strings.HasPrefix(string(out), "man 2.") {
		return ""
	}
	return man
}

func TestHelpTopics(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	for _, topic := range []string{"exit-codes", "statuses", "time"} {
		if !strings.Contains(s.call(0, "amends help").Stdout, "\n  "+topic+" ") {
			t.Errorf("help does not name the topic %s", topic)
		}
		for _, program := range []string{"amends", "amendsctl"} {
			a := s.call(0, program+" help "+topic)
			if title := strings.ToUpper(strings.ReplaceAll(topic, "-", " ")); a.First() != title || strings.Contains(a.Stdout, "Flags") {
				t.Errorf("%s help %s: %s", program, topic, a.Stdout)
			}
		}
	}
	for line, cause := range map[string]string{"amends help tme": "did you mean: amends help time?", "amends help xyzzy": "unknown command", "amends help source crate": "unknown command"} {
		if a := s.call(2, line); !strings.Contains(a.Cause(), cause) {
			t.Errorf("%s: %s", line, a.Stderr)
		}
	}
}

// Completion knows the flags as they are typed here, the forms of answers, and that arguments are no files.
func TestCompletion(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	for line, want := range map[string]string{
		"amends __complete ver":                                "verify",
		"amends __complete source ":                            "create",
		"amends __complete verify --man":                       "--manifest",
		"amends __complete verify -manifest x.json --tim":      "--timeout",
		"amends __complete verify -o ":                         "json",
		"amends __complete sql -o ":                            "csv",
		"amends __complete inspect -o ":                        "html",
		"amends __complete showcase -o ":                       "html",
		"amends __complete source load -format ":               "raw",
		"amends __complete verify -manifest x.json -o ":        "text",
		"amendsctl __complete source-":                         "source-load",
		"amends __complete help exit":                          "exit-codes",
		"amends __complete verify -manifest x.json -timeout 1": ":0", // a value of a flag: the shell decides
		"amends __complete verify -live ":                      ":4", // no argument: no file names
		"amends __complete view show -watch ":                  ":4",
	} {
		words := strings.Split(line, " ")
		a := s.words(words...)
		if a.Code != 0 || !slices.ContainsFunc(strings.Split(a.Stdout, "\n"), func(l string) bool { l, _, _ = strings.Cut(l, "\t"); return l == want }) {
			t.Errorf("%s: code %d, want %q in\n%s%s", line, a.Code, want, a.Stdout, a.Stderr)
		}
	}
	for _, name := range []string{"bash", "zsh", "fish", "powershell"} {
		if a := s.call(0, "amends completion "+name); len(a.Stdout) < 1000 {
			t.Errorf("%s: %s", name, a.Stdout)
		}
	}
}

// What only reads can be watched, and nothing else: not what follows by itself, takes long, or writes.
func TestWhatOnlyReadsCanBeWatched(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	var got []string
	for _, words := range commands(t, s, "amends") {
		if strings.Contains(s.words(append(words, "-help")...).Stdout, "--watch interval[=2s]") {
			got = append(got, strings.Join(words[1:], " "))
		}
	}
	slices.Sort(got)
	want := []string{"balance", "compare", "diagnostics", "diff", "doctor", "explain", "history", "inspect", "migrate plan", "migrate status", "sql", "status", "view show"}
	if !slices.Equal(got, want) {
		t.Errorf("%q can be watched, want %q", got, want)
	}
}
