package usage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// commandTree has flags at two levels.
func commandTree() *cobra.Command {
	root := &cobra.Command{Use: "amends"}
	child := &cobra.Command{Use: "verify"}
	child.Flags().String("brokers", "", "")
	child.Flags().Duration("timeout", 0, "")
	child.Flags().Bool("no-standby", false, "")
	root.AddCommand(child)
	return root
}

func layered(t *testing.T, text string, env map[string]string) (*Settings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "amends.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Layered(commandTree(), func(name string) string {
		if name == FileName {
			return path
		}
		return env[name]
	}, "AMENDS_DATABASE_URL")
}

func TestFileStandsUnderTheEnvironment(t *testing.T) {
	settings, err := layered(t, "# comment\nbrokers: [a:1, 'b:2']\ntimeout: 90s\nno-standby: true\ndatabase_url_file: /run/secret\n",
		map[string]string{"AMENDS_TIMEOUT": "5s"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"AMENDS_BROKERS": "a:1,b:2", "AMENDS_TIMEOUT": "5s", "AMENDS_NO_STANDBY": "true",
		"AMENDS_DATABASE_URL_FILE": "/run/secret", "AMENDS_OTHER": ""} {
		if got := settings.Lookup(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

// A flag that means something else on another command has a setting of its own: what is set for one leaves the other alone.
func TestAFlagMayHaveASettingOfItsOwn(t *testing.T) {
	root := &cobra.Command{Use: "amends"}
	values := map[string]*string{}
	for _, name := range []string{"inspect", "load", "other"} {
		c := &cobra.Command{Use: name}
		values[name] = c.Flags().String("format", "default", "the form")
		if name != "other" {
			Own(c, "format", name+"-format")
		}
		root.AddCommand(c)
	}
	path := filepath.Join(t.TempDir(), "amends.yaml")
	if err := os.WriteFile(path, []byte("load-format: raw\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{FileName: path, "AMENDS_FORMAT": "plain", "AMENDS_INSPECT_FORMAT": "html"}
	settings, err := Layered(root, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"inspect": "html", "load": "raw", "other": "plain"} {
		c, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		if err := settings.Apply(c); err != nil || *values[name] != want {
			t.Errorf("%s: %s, %v, want %s", name, *values[name], err, want)
		}
		if f := c.Flags().Lookup("format"); name == "inspect" && f.Usage != "the form (AMENDS_INSPECT_FORMAT)" {
			t.Errorf("help %q", f.Usage)
		}
	}
}

func TestFileRefusesWithTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"brokers: a\nbroker: b\n":        `line 2: unknown name "broker"`,
		"brokers: a\nbrokers: b\n":       "brokers",
		"\ndatabase_url: postgres://x\n": `line 2: unknown name "database_url"`,
		"brokers: {a: b}\n":              "line 1",
		"brokers:\n":                     "line 1",
		"- a\n- b\n":                     "a mapping of flag names",
		"brokers: \"a\n":                 "read ",
	} {
		_, err := layered(t, text, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestFileIsFoundUnderTheConfigurationDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "amends"), 0o700); err != nil {
		t.Fatal(err)
	}
	look := func(name string) string {
		if name == "XDG_CONFIG_HOME" {
			return dir
		}
		return ""
	}
	if settings, err := Layered(commandTree(), look); err != nil || settings.Lookup("AMENDS_BROKERS") != "" {
		t.Fatalf("without a file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "amends", "config.yaml"), []byte("brokers: c:3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := Layered(commandTree(), look)
	if err != nil || settings.Lookup("AMENDS_BROKERS") != "c:3" {
		t.Fatalf("brokers %q, %v", settings.Lookup("AMENDS_BROKERS"), err)
	}
}

func TestNamedFileMustExist(t *testing.T) {
	_, err := Layered(commandTree(), func(name string) string {
		if name == FileName {
			return "/nonexistent/amends.yaml"
		}
		return ""
	})
	if err == nil || !strings.Contains(err.Error(), FileName) {
		t.Fatalf("error %v", err)
	}
}

func TestAWrongValueIsReportedWhereItStands(t *testing.T) {
	for _, c := range []struct {
		text, want string
		env        map[string]string
	}{
		{"brokers: a:1\ntimeout: abc\n", `line 2: timeout: "abc": invalid argument`, nil},
		{"timeout: 5s\n", `AMENDS_TIMEOUT="xyz": invalid argument`, map[string]string{"AMENDS_TIMEOUT": "xyz"}},
	} {
		settings, err := layered(t, c.text, c.env)
		if err != nil {
			t.Fatal(err)
		}
		verify, _, err := commandTree().Find([]string{"verify"})
		if err != nil {
			t.Fatal(err)
		}
		if err = settings.Apply(verify); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "AMENDS_") != (c.env != nil) {
			t.Errorf("%q %v: %v", c.text, c.env, err)
		}
	}
}
