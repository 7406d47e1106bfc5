package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FileName is the variable that names the configuration file. Without it amends/config.yaml under the user's
// configuration directory is read, if there is one.
const FileName = "AMENDS_CONFIG_FILE"

// Settings are what the environment and, under it, the configuration file say.
type Settings struct {
	environment func(string) string
	path        string
	values      map[string]setting // of the file, by variable
	secrets     []string           // variables that never come from a flag
}

// setting is one value of the configuration file.
type setting struct {
	key, text string
	line      int
}

// Layered returns settings that answer from the environment first and then from the configuration file: one YAML
// mapping from the settings of flags of any command under root to scalars or lists of scalars, and from names of secrets with
// _file behind them to paths. A secret itself, an unknown or a repeated name and nesting are refused with their line.
func Layered(root *cobra.Command, lookup func(string) string, secrets ...string) (*Settings, error) {
	path, raw, err := readFile(lookup)
	s := &Settings{environment: lookup, path: path, secrets: secrets}
	if err != nil || path == "" {
		return s, err
	}
	known := map[string]string{}
	names(root, known)
	for _, name := range secrets {
		known[strings.ToLower(strings.TrimPrefix(name, "AMENDS_"))+"_file"] = name + "_FILE"
	}
	s.values, err = parseFile(path, raw, known)
	return s, err
}

// Lookup returns the value of a variable, "" if neither has one.
func (s *Settings) Lookup(name string) string {
	if v := s.environment(name); v != "" {
		return v
	}
	return s.values[name].text
}

// Given is one value of a setting, and who gave it.
type Given struct {
	Text string
	From Giver
	Line int // of the configuration file, from 1; 0 elsewhere
}

// Giver is who gives a value.
type Giver string

// The givers; each outweighs those after it, and a flag on the command line outweighs all.
const (
	Environment Giver = "environment"
	File        Giver = "file"
	Nobody      Giver = "default"
)

// Find returns what is given for a variable; From is Nobody if nothing is.
func (s *Settings) Find(name string) Given {
	if v := s.environment(name); v != "" {
		return Given{Text: v, From: Environment}
	}
	if v, ok := s.values[name]; ok {
		return Given{Text: v.text, From: File, Line: v.line}
	}
	return Given{From: Nobody}
}

// Path returns the configuration file that was read, "" if there is none.
func (s *Settings) Path() string { return s.path }

// Secrets returns the variables that never come from a flag; each may also be given as a file, under its name and _FILE.
func (s *Settings) Secrets() []string { return s.secrets }

// origin says where a variable's value was given.
func (s *Settings) origin(name string) string {
	v := s.Lookup(name)
	if s.environment(name) != "" {
		return fmt.Sprintf("%s=%q", name, v)
	}
	return fmt.Sprintf("read %s: line %d: %s: %q", s.path, s.values[name].line, s.values[name].key, v)
}

func readFile(lookup func(string) string) (string, []byte, error) {
	path := lookup(FileName)
	if path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return "", nil, Errorf("%s: %v", FileName, err)
		}
		return path, raw, nil
	}
	dir := lookup("XDG_CONFIG_HOME")
	if home := lookup("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir == "" {
		return "", nil, nil
	}
	path = filepath.Join(dir, "amends", "config.yaml")
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, Errorf("read configuration: %v", err)
	}
	return path, raw, nil
}

// names collects the settings of the flags of a tree of commands, each with its variable.
func names(cmd *cobra.Command, known map[string]string) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			known[Setting(f)] = Variable(Setting(f))
		}
	})
	for _, c := range cmd.Commands() {
		names(c, known)
	}
}

// parseFile reads the mapping and returns the values by variable.
func parseFile(path string, raw []byte, known map[string]string) (map[string]setting, error) {
	file, err := parser.ParseBytes(raw, 0)
	if err != nil {
		return nil, Errorf("read %s: %v", path, err)
	}
	values := map[string]setting{}
	for _, doc := range file.Docs {
		var entries []*ast.MappingValueNode
		switch body := doc.Body.(type) {
		case nil, *ast.CommentGroupNode:
			continue
		case *ast.MappingNode:
			entries = body.Values
		case *ast.MappingValueNode:
			entries = []*ast.MappingValueNode{body}
		default:
			return nil, Errorf("read %s: line %d: a mapping of flag names to values is expected", path, doc.Body.GetToken().Position.Line)
		}
		for _, e := range entries {
			key, line := e.Key.String(), e.Key.GetToken().Position.Line
			name, ok := known[key]
			if !ok {
				return nil, Errorf("read %s: line %d: unknown name %q; names are those of flags, and secrets are given as database_url_file", path, line, key)
			}
			if _, twice := values[name]; twice {
				return nil, Errorf("read %s: line %d: %q is given twice", path, line, key)
			}
			text, ok := scalar(e.Value)
			if !ok {
				return nil, Errorf("read %s: line %d: %q needs one value, or a list of values", path, line, key)
			}
			values[name] = setting{key: key, text: text, line: line}
		}
	}
	return values, nil
}

// scalar returns a value as a flag would be typed; lists are joined by commas.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.SequenceNode:
		parts := make([]string, 0, len(n.Values))
		for _, v := range n.Values {
			part, ok := scalar(v)
			if _, nested := v.(*ast.SequenceNode); !ok || nested {
				return "", false
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ","), len(parts) > 0
	case *ast.StringNode:
		return n.Value, true
	case *ast.NullNode:
		return "", false
	case ast.ScalarNode:
		return n.GetToken().Value, true
	}
	return "", false
}
