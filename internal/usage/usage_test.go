package usage_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"amends/internal/usage"
)

func TestRewriteSingleDashLongFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want []string }{
		{[]string{"-role", "relay", "-o", "json"}, []string{"--role", "relay", "-o", "json"}},
		{[]string{"-format=raw", "--file", "x"}, []string{"--format=raw", "--file", "x"}},
		{[]string{"-o=json", "-h", "-"}, []string{"-o=json", "-h", "-"}},
		{[]string{"-seed", "-5", "-0.5"}, []string{"--seed", "-5", "-0.5"}},
		{[]string{"-a1", "--", "-role"}, []string{"--a1", "--", "-role"}},
		{[]string{"status", "-watch", "500ms", "5s"}, []string{"status", "--watch=500ms", "5s"}},
		{[]string{"--watch", "widget", "5s"}, []string{"--watch", "widget", "5s"}},
		{[]string{"-watch=1s", "5s", "--", "-watch", "5s"}, []string{"--watch=1s", "5s", "--", "-watch", "5s"}},
		{nil, []string{}},
	} {
		if diff := cmp.Diff(c.want, usage.Rewrite(c.in)); diff != "" {
			t.Errorf("%q: %s", c.in, diff)
		}
	}
}

func TestEnvironmentFillsWhatWasNotTyped(t *testing.T) {
	t.Parallel()
	parse := func(env map[string]string, args ...string) (file string, wait time.Duration, err error) {
		c := &cobra.Command{Use: "x", RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := usage.Layered(cmd, func(k string) string { return env[k] })
			if err != nil {
				return err
			}
			return settings.Apply(cmd)
		}}
		c.SilenceErrors, c.SilenceUsage = true, true
		c.Flags().StringVar(&file, "file", "default", "")
		c.Flags().DurationVar(&wait, "max-wait", 0, "")
		c.SetArgs(usage.Rewrite(args))
		err = c.Execute()
		return file, wait, err
	}
	if f, w, err := parse(map[string]string{"AMENDS_FILE": "env", "AMENDS_MAX_WAIT": "3s"}); f != "env" || w != 3*time.Second || err != nil {
		t.Error(f, w, err)
	}
	if f, _, err := parse(map[string]string{"AMENDS_FILE": "env"}, "-file", "typed"); f != "typed" || err != nil {
		t.Error(f, err)
	}
	if f, _, err := parse(map[string]string{"AMENDS_FILE": ""}); f != "default" || err != nil {
		t.Error(f, err)
	}
	var wrong *usage.Error
	if _, _, err := parse(map[string]string{"AMENDS_MAX_WAIT": "soon"}); !errors.As(err, &wrong) {
		t.Error(err)
	}
}

func TestSecretComesFromEnvironmentOrFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env  map[string]string
		want string
	}{{nil, ""}, {map[string]string{"S": "direct", "S_FILE": path}, "direct"}, {map[string]string{"S_FILE": path}, "from file"}} {
		if got, err := usage.Secret(func(k string) string { return c.env[k] }, "S"); got != c.want || err != nil {
			t.Errorf("%v: %q %v", c.env, got, err)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, cause := range map[string]string{"/nowhere": "S_FILE: open /nowhere: no such file", empty: "S_FILE: " + empty + " is empty"} {
		var wrong *usage.Error
		_, err := usage.Secret(func(k string) string { return map[string]string{"S_FILE": file}[k] }, "S")
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), cause) {
			t.Errorf("%s: %v, want %q", file, err, cause)
		}
	}
}
