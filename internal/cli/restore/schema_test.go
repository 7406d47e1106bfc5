package restore_test

import (
	"testing"

	"amends/internal/programtest"
)

// conforms checks a JSON answer against its documented schema.
func (w *world) conforms(command, answer string) {
	w.t.Helper()
	if n := programtest.Conforms(w.t, command, answer); n != 1 {
		w.t.Errorf("%s: %d JSON values, want 1", command, n)
	}
}

// Every answer is as documented: dry, executed, done before, held up, blocked, equal and different.
func TestAnswersAreTheDocumentedSchemas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loadedBlocked()
	for _, c := range []struct {
		command, line string
		code          int
	}{
		{"replay", "replay -manifest @pipeline.json", 0},
		{"replay", "replay -manifest @pipeline.json -execute", 0},
		{"rebuild", rebuild, 0},
		{"rebuild", rebuild + " -execute -timeout 3s", 3},
		{"rebuild", rebuild, 0},
		{"rebuild", rebuild + " -execute", 4},
		{"rebuild", rebuild + " -execute", 4},
		{"compare", compare, 0},
	} {
		release := func() {}
		if c.code == 3 {
			release = w.guard()
		}
		w.conforms(c.command, w.want(c.code, "", c.line+" -o json").Stdout)
		release()
	}
	w.exec(`UPDATE amends.view_rows SET close = close + 1 WHERE kind = 1 AND namespace_id = (SELECT namespace_id FROM amends.rebuilds)`)
	w.conforms("compare", w.want(5, "", compare+" -o json").Stdout)
	w.exec(`DELETE FROM amends.view_rows WHERE namespace_id = (SELECT namespace_id FROM amends.rebuilds)`)
	w.conforms("compare", w.want(5, "", compare+" -o json").Stdout)
	w.exec(`UPDATE amends.journal SET digest = substr(sha256(digest), 1, 16)`)
	w.conforms("replay", w.want(11, "", "replay -manifest @pipeline.json -o json").Stdout)
}
