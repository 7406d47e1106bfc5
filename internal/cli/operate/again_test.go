package operate

import (
	"testing"

	"amends/internal/cli/target"
)

// The printed command can be pasted whatever the paths of program and manifest hold.
func TestTheNextPageCanBePasted(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"":               "'./my tools/amends' diagnostics -limit 5",
		"/data/1.json":   "'./my tools/amends' diagnostics -manifest /data/1.json -limit 5",
		"/data/é-1.json": "'./my tools/amends' diagnostics -manifest '/data/é-1.json' -limit 5",
		"a b'c$d.json":   `'./my tools/amends' diagnostics -manifest 'a b'\''c$d.json' -limit 5`,
	} {
		e := &target.Env{Program: "./my tools/amends", Getenv: func(string) string { return "" }}
		cmd := Diagnostics(e)
		cmd.Use = "diagnostics"
		if err := cmd.Flags().Set("manifest", path); err != nil {
			t.Fatal(err)
		}
		if got := again(cmd, e, 5); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}
