package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"strings"
)

// guards.txt is read line by line; its own head says how.
//
//go:embed guards.txt
var listText []byte

// guard is a named guard of the product and the ways to remove it.
type guard struct {
	name    string
	mutants []*mutant
}

// mutant is one removal: text of files and what stands there instead, the test that must fail, and the words it must say.
type mutant struct {
	guard string
	id    string
	what  string
	edits []edit
	test  target
	says  string
	smoke bool
}

// edit replaces old, which stands once in file, by new.
type edit struct{ file, old, new string }

// target is a test or subtests: a package and a pattern of go test -run.
type target struct{ pkg, run string }

func (t target) String() string { return t.pkg + " " + t.run }

// parseList reads the text of guards.txt: every guard has mutants, every mutant is complete and has an id of its own.
func parseList(text []byte) ([]guard, error) {
	p := listParser{ids: map[string]bool{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	n := 0
	for lines.Scan() {
		n++
		if err := p.line(lines.Text()); err != nil {
			return nil, fmt.Errorf("read list of guards: line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read list of guards: %w", err)
	}
	if err := p.endGuard(); err != nil {
		return nil, fmt.Errorf("read list of guards: %w", err)
	}
	if len(p.guards) == 0 {
		return nil, errors.New("read list of guards: it names none")
	}
	return p.guards, nil
}

type listParser struct {
	guards []guard
	ids    map[string]bool
}

func (p *listParser) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "" || line[0] == '#':
		return nil
	case word == "guard":
		if err := p.endGuard(); err != nil {
			return err
		}
		p.guards = append(p.guards, guard{name: rest})
		return nil
	case len(p.guards) == 0:
		return errors.New("no guard yet")
	case word == "mutant":
		return p.begin(rest)
	}
	g := &p.guards[len(p.guards)-1]
	if len(g.mutants) == 0 {
		return errors.New("no mutant yet")
	}
	return g.mutants[len(g.mutants)-1].line(line, word, rest)
}

func (p *listParser) begin(rest string) error {
	if err := p.endMutant(); err != nil {
		return err
	}
	id, what, described := strings.Cut(rest, ": ")
	if !described || p.ids[id] || strings.ContainsAny(id, " \t") {
		return fmt.Errorf("mutant %q has no id of its own or no words about it", rest)
	}
	p.ids[id] = true
	g := &p.guards[len(p.guards)-1]
	g.mutants = append(g.mutants, &mutant{guard: g.name, id: id, what: what})
	return nil
}

func (m *mutant) line(line, word, rest string) error {
	switch {
	case line == "smoke":
		m.smoke = true
	case word == "file":
		m.edits = append(m.edits, edit{file: rest})
	case word == "test":
		m.test.pkg, m.test.run, _ = strings.Cut(rest, " ")
	case word == "says":
		m.says = rest
	case (line[0] == '-' || line[0] == '+') && len(m.edits) > 0:
		e := &m.edits[len(m.edits)-1]
		to := &e.old
		if line[0] == '+' {
			to = &e.new
		}
		if *to != "" {
			*to += "\n"
		}
		*to += line[1:]
	default:
		return fmt.Errorf("%q says nothing about a mutant", line)
	}
	return nil
}

func (p *listParser) endGuard() error {
	if len(p.guards) == 0 {
		return nil
	}
	if g := p.guards[len(p.guards)-1]; len(g.mutants) == 0 {
		return fmt.Errorf("guard %q has no mutant", g.name)
	}
	return p.endMutant()
}

// endMutant checks the mutant that ends here.
func (p *listParser) endMutant() error {
	g := p.guards[len(p.guards)-1]
	if len(g.mutants) == 0 {
		return nil
	}
	m := g.mutants[len(g.mutants)-1]
	switch {
	case len(m.edits) == 0:
		return fmt.Errorf("mutant %s changes nothing", m.id)
	case m.test.pkg == "" || m.test.run == "":
		return fmt.Errorf("mutant %s names no test", m.id)
	case m.says == "":
		return fmt.Errorf("mutant %s does not say what its test says", m.id)
	}
	for _, e := range m.edits {
		if e.old == "" || e.old == e.new {
			return fmt.Errorf("mutant %s leaves %s as it is", m.id, e.file)
		}
	}
	return nil
}

// apply returns text with the edit made; an error where old does not stand there exactly once.
func (e edit) apply(text []byte) ([]byte, error) {
	if n := bytes.Count(text, []byte(e.old)); n != 1 {
		return nil, fmt.Errorf("%s holds %d times, not once: %q", e.file, n, e.old)
	}
	return bytes.Replace(text, []byte(e.old), []byte(e.new), 1), nil
}
