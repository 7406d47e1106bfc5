package absent

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRequiredNamesKinds(t *testing.T) {
	for _, c := range []struct {
		env, kind string
		want      bool
	}{
		{"", KindData, false}, {"all", KindData, false}, {"all", KindBroker, true}, {"all,data", KindData, true},
		{" data , all", KindPostgreSQL, true}, {"data", KindBroker, false}, {"broker", KindBroker, true}, {"alldata", KindBroker, false},
	} {
		t.Setenv("AMENDS_REQUIRE", c.env)
		if got := Required(c.kind); got != c.want {
			t.Errorf("AMENDS_REQUIRE=%q requires %s = %v, want %v", c.env, c.kind, got, c.want)
		}
	}
}

// recorder takes the place of a test that Skip or Data ends.
type recorder struct {
	testing.TB
	fatal, skip string
}

type ended struct{}

func (r *recorder) Helper()           {}
func (r *recorder) Fatal(args ...any) { r.fatal = args[0].(string); panic(ended{}) }
func (r *recorder) Skip(args ...any)  { r.skip = args[0].(string); panic(ended{}) }

func run(t *testing.T, f func(testing.TB)) (r *recorder) {
	r = &recorder{TB: t}
	defer func() {
		if e := recover(); e != nil {
			if _, ok := e.(ended); !ok {
				panic(e)
			}
		}
	}()
	f(r)
	return r
}

func TestSkipOrFatal(t *testing.T) {
	const text = "absent: a broker; to have it: start one"
	f := func(tb testing.TB) { Skip(tb, KindBroker, "a broker", "start one") }
	t.Setenv("AMENDS_REQUIRE", "")
	if r := run(t, f); r.skip != text || r.fatal != "" {
		t.Errorf("not required: skip %q, fatal %q", r.skip, r.fatal)
	}
	t.Setenv("AMENDS_REQUIRE", "all")
	if r := run(t, f); r.fatal != text || r.skip != "" {
		t.Errorf("required: skip %q, fatal %q", r.skip, r.fatal)
	}
}

func TestDataFollowsEnvironment(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "vectors"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AMENDS_TEST_DATA", dir)
	if got := Data(t, "x"); got != filepath.Join(dir, "x") {
		t.Errorf("Data = %s", got)
	}
	if got := Vectors(t); got != filepath.Join(dir, "vectors") {
		t.Errorf("Vectors = %s", got)
	}
	t.Setenv("AMENDS_REQUIRE", "data")
	if r := run(t, func(tb testing.TB) { Data(tb, "no such file") }); r.fatal == "" {
		t.Error("an absent file that is required did not fail")
	}
}
