package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"amends/internal/kafkatest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// space is a pipeline of its own on a broker and a database, with the worked example's configuration.
type space struct {
	*shell
	database string
}

func newSpace(t *testing.T) *space {
	t.Helper()
	x := &space{database: pgtest.New(t)}
	x.shell = newShell(t, map[string]string{"AMENDS_DATABASE_URL": x.database, "AMENDS_BROKERS": strings.Join(kafkatest.Embedded(t), ",")})
	x.Write("source.json", x.call(0, "amends source create -namespace demo -topic amends-test-source").Stdout)
	x.Write("pipeline.json", x.call(0, "amends output create -manifest @source.json -topic amends-test-output").Stdout)
	x.Env["AMENDS_MANIFEST"] = x.Path("pipeline.json")
	return x
}

// run runs the roles until the test's end.
func (x *space) run() { x.t.Helper(); x.Roles("amends run") }

// load loads a file of fixtures, or one of the shell's folder that begins with @, and waits until the view holds it and the relay has
// its receipts, which a verification does not wait for.
func (x *space) load(files ...string) {
	x.t.Helper()
	for _, f := range files {
		format := "jsonl"
		if strings.HasSuffix(f, ".raw") {
			format = "raw"
		}
		if !strings.HasPrefix(f, "@") {
			f = fixture(x.t, f)
		}
		x.call(0, "amends source load -file "+f+" -format "+format)
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		a := x.Call(x.t.Context(), "amends verify -timeout 20s")
		if a.Code == 0 || a.Code == 4 {
			break
		}
		if time.Since(began) > programtest.Deadline {
			x.t.Fatalf("the view does not get there: %s%s", a.Stdout, a.Stderr)
		}
	}
	programtest.Await(x.t, "every receipt is written", func() bool {
		return strings.Contains(x.Call(x.t.Context(), "amends status").First(), "; outbox 0; ")
	})
}

// fixture returns the path of a fixture of the repository.
func fixture(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "fixtures", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}
