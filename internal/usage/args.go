package usage

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Rewrite turns single-dash long flags into the double-dash form that the flag parser knows: -role relay becomes
// --role relay, -format=raw becomes --format=raw. One-letter flags, numbers, a lone dash and everything after -- stay.
// -watch has a value or none: a duration right after it is its value.
func Rewrite(args []string) []string {
	out := make([]string, 0, len(args))
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		if n := len(out); n > 0 && out[n-1] == "--watch" {
			if _, err := time.ParseDuration(a); err == nil {
				out[n-1] += "=" + a
				continue
			}
		}
		out = append(out, doubled(a))
	}
	return out
}

func doubled(arg string) string {
	if len(arg) < 3 || arg[0] != '-' || arg[1] == '-' || arg[2] == '=' {
		return arg
	}
	if c := arg[1]; c < 'A' || c > 'z' {
		return arg
	}
	return "-" + arg
}

// Apply gives every flag that was not typed the value of its variable, where the settings hold one that is not empty.
func (s *Settings) Apply(cmd *cobra.Command) error {
	var failed error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || failed != nil {
			return
		}
		name := Variable(Setting(f))
		v := s.Lookup(name)
		if v == "" {
			return
		}
		if err := cmd.Flags().Set(f.Name, v); err != nil {
			failed = Errorf("%s: %v", s.origin(name), err)
		}
	})
	return failed
}

// Variable returns the environment variable of a setting: AMENDS_ and its name in capitals, dashes as underscores.
func Variable(setting string) string {
	return "AMENDS_" + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// annotation is of a flag that holds the name of its setting.
const annotation = "setting"

// Own gives a flag of a command a setting of its own, which its help names: for a name that means something else, or takes other
// values, on another command, so that setting it for one would break the other. By convention the setting is COMMAND-FLAG.
func Own(cmd *cobra.Command, flag, setting string) {
	f := cmd.Flags().Lookup(flag)
	f.Annotations = map[string][]string{annotation: {setting}}
	f.Usage += " (" + Variable(setting) + ")"
}

// Setting returns the name of a flag's setting in the configuration file: that of the flag, unless it has its own.
func Setting(f *pflag.Flag) string {
	if own := f.Annotations[annotation]; len(own) == 1 {
		return own[0]
	}
	return f.Name
}

// Secret reads a value that never comes from a flag: from the variable, or from the file that <variable>_FILE names. An empty file
// is refused: it is one that is being written, and must not lead to another database.
func Secret(lookup func(string) string, name string) (string, error) {
	if v := lookup(name); v != "" {
		return v, nil
	}
	path := lookup(name + "_FILE")
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", Errorf("%s_FILE: %v", name, err)
	}
	v := strings.TrimSpace(string(b))
	if v == "" {
		return "", Errorf("%s_FILE: %s is empty", name, path)
	}
	return v, nil
}
