package choice

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Scenario is a schedule as a file keeps it: what it showed, and its answers.
type Scenario struct {
	Note    string // one line
	Answers []byte
}

// SyntaxError says where a file is no scenario.
type SyntaxError struct {
	Line int // from 1
	Text string
}

// Error names the line.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d is no part of a scenario: %q", e.Line, e.Text)
}

// Write writes s: the note as a comment, the answers as decimal numbers, 30 a line. It fails with w's error.
func (s *Scenario) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# %s\n", strings.ReplaceAll(s.Note, "\n", " "))
	for i, a := range s.Answers {
		end := " "
		if i%30 == 29 || i == len(s.Answers)-1 {
			end = "\n"
		}
		fmt.Fprintf(b, "%d%s", a, end)
	}
	return b.Flush()
}

// ReadFile reads the file of that name: os's error, or Read's, with its name.
func ReadFile(name string) (*Scenario, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read schedule: %w", err)
	}
	defer file.Close()
	s, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("read schedule %s: %w", name, err)
	}
	return s, nil
}

// Read reads what Write wrote: comments begin with #, everything else is numbers of 0 to 255.
func Read(r io.Reader) (*Scenario, error) {
	s := &Scenario{}
	in := bufio.NewScanner(r)
	for line := 1; in.Scan(); line++ {
		text := strings.TrimSpace(in.Text())
		if note, ok := strings.CutPrefix(text, "#"); ok {
			if s.Note == "" {
				s.Note = strings.TrimSpace(note)
			}
			continue
		}
		for _, word := range strings.Fields(text) {
			n, err := strconv.ParseUint(word, 10, 8)
			if err != nil {
				return nil, &SyntaxError{Line: line, Text: text}
			}
			s.Answers = append(s.Answers, byte(n))
		}
	}
	return s, in.Err()
}
