package restore_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/programtest"
)

var story = []string{"before.jsonl", "correction.jsonl", "cancel-last-day.jsonl"}

// SC27: a dry replay changes nothing, an executed one the epoch (and with it the nonce) alone.
func TestSC27ReplayChangesOnlyTheEpoch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	before := w.dump("")
	if a := w.want(0, "", "replay -manifest @pipeline.json"); !strings.HasPrefix(a.Stdout, "SAME  5 records ") || !strings.Contains(a.Stderr, "5 source offsets") ||
		!strings.Contains(a.Stderr, "11 messages") {
		t.Errorf("dry:\n%s\n%s", a.Stdout, a.Stderr)
	}
	if d := cmp.Diff(before, w.dump("")); d != "" {
		t.Fatalf("a dry replay changed (-before +after):\n%s", d)
	}
	const (
		epochs = `SELECT string_agg(epoch::text, ' ' ORDER BY partition) FROM amends.partitions`
		raised = `SELECT string_agg((epoch + 1)::text, ' ' ORDER BY partition) FROM amends.partitions`
		rest   = `SELECT json_agg(to_jsonb(p) - 'epoch' - 'nonce' ORDER BY partition)::text FROM amends.partitions AS p`
	)
	was, want, others := w.read(epochs), w.read(raised), w.read(rest)
	if a := w.want(0, "", "replay -manifest @pipeline.json -execute"); !strings.HasPrefix(a.Stdout, "REPLAYED  5 records ") {
		t.Errorf("executed:\n%s", a.Stdout)
	}
	if now := w.read(epochs); now != want {
		t.Errorf("epochs %s became %s, want %s", was, now, want)
	}
	if d := cmp.Diff(others, w.read(rest)); d != "" {
		t.Errorf("partition rows, epoch and nonce aside (-before +after):\n%s", d)
	}
	after := w.dump("")
	delete(before, "partitions")
	delete(after, "partitions")
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("an executed replay changed (-before +after):\n%s", d)
	}
}

// A replay that could not install every epoch gives no answer, which would say that it did.
func TestReplayThatCannotInstallSaysHowFarItGot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	if _, err := w.conn.Exec(t.Context(), `ALTER TABLE amends.partitions ADD CONSTRAINT no_higher CHECK (partition <> 1) NOT VALID`); err != nil {
		t.Fatal(err)
	}
	if a := w.want(1, "higher epochs were installed for 1 of 2 partitions: ", "replay -manifest @pipeline.json -execute"); a.Stdout != "" {
		t.Errorf("it answered\n%s", a.Stdout)
	}
}

// A worker that runs while a replay is executed is fenced: it ends with code 10, and the next one goes on.
func TestReplayFencesARunningWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story[0])
	p := w.start("run -manifest @pipeline.json -role source")
	programtest.Await(t, "the worker claims", func() bool { return w.read(`SELECT min(epoch)::text FROM amends.partitions`) >= "2" })
	w.want(0, "", "replay -manifest @pipeline.json -execute")
	if code := p.Wait().Code; code != 10 {
		t.Errorf("the worker ended with %d, want 10\n%s", code, p.Stderr)
	}
	w.loaded(story[1:]...)
	w.want(0, "", "replay -manifest @pipeline.json")
}

// Whatever is not recorded as the source holds it is named by its coordinates, and nothing is changed.
func TestReplayNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	for name, c := range map[string]struct{ tamper, first string }{
		"digest":  {`UPDATE amends.journal SET digest = '\x00112233445566778899aabbccddeeff' WHERE source_offset = 1`, "DIGEST partition 0 offset 1"},
		"missing": {`DELETE FROM amends.journal WHERE source_offset IN (0, 4)`, "MISSING partition 0 offset 0"},
		"extra": {`INSERT INTO amends.journal SELECT (json_populate_record(j, '{"source_offset":7}')).* FROM amends.journal AS j WHERE source_offset = 4`,
			"EXTRA partition 0 offset 7"},
		"elsewhere": {`UPDATE amends.journal SET partition = 1 WHERE source_offset = 4`, "MISSING partition 0 offset 4"},
	} {
		t.Run(name, func(t *testing.T) {
			w.exec("CREATE TABLE IF NOT EXISTS kept AS SELECT * FROM amends.journal; " + c.tamper)
			defer w.exec("TRUNCATE amends.journal; INSERT INTO amends.journal SELECT * FROM kept")
			before := w.dump("")
			a := w.want(11, c.first, "replay -manifest @pipeline.json -execute -o json")
			var j struct {
				Result      string
				Executed    bool
				Differences struct {
					Count int64
					First []struct {
						What              string
						Partition, Offset int64
					}
				}
			}
			if err := json.Unmarshal([]byte(a.Stdout), &j); err != nil || j.Result != "DIFFERS" || j.Executed || len(j.Differences.First) != int(j.Differences.Count) {
				t.Errorf("%v: %s", err, a.Stdout)
			}
			if want := map[string]int64{"digest": 1, "missing": 2, "extra": 1, "elsewhere": 2}[name]; j.Differences.Count != want {
				t.Errorf("%d differences, want %d: %s", j.Differences.Count, want, a.Stdout)
			}
			if d := cmp.Diff(before, w.dump("")); d != "" {
				t.Errorf("changed (-before +after):\n%s", d)
			}
		})
	}
	w.want(0, "", "replay -manifest @pipeline.json")
}

func TestReplayOfAnEmptyNamespaceAndOfNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	if a := w.want(0, "", "replay -manifest @pipeline.json -execute"); !strings.HasPrefix(a.Stdout, "REPLAYED  0 records ") {
		t.Error(a.Stdout)
	}
	w.want(13, "", "replay -manifest "+w.Write("other.json", strings.Replace(w.Read("pipeline.json"), `"shop"`, `"none"`, 1)))
	w.want(2, `takes no argument "shop"`, "replay shop -manifest @pipeline.json")
}

// A source that lost records, or is another one, is no history to replay.
func TestReplayRefusesAHistoryThatIsNotComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loaded(story...)
	before := w.dump("")
	w.truncate("shop-source", 0, 2)
	w.want(11, "log start", "replay -manifest @pipeline.json -execute")
	w.recreate("shop-source", 2)
	w.want(11, "incarnation", "replay -manifest @pipeline.json -execute")
	if d := cmp.Diff(before, w.dump("")); d != "" {
		t.Errorf("changed (-before +after):\n%s", d)
	}
}

// A replay that is stopped ends with code 1 and has changed nothing.
func TestReplayStops(t *testing.T) {
	t.Parallel()
	newWorld(t, "").replayHeld(1, "", func(p *programtest.Process, _ *held) { p.Signal(syscall.SIGTERM) })
}

// A source that loses records while it is read again is no history either, though every record was seen.
func TestReplayLooksAtTheSourceAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.replayHeld(11, "log start", func(_ *programtest.Process, h *held) {
		w.truncate("shop-source", 0, 2)
		h.shot.Release()
	})
}

// replayHeld executes a replay, meddles while it reads what is recorded, and checks how it ends and that nothing was changed.
func (w *world) replayHeld(code int, cause string, meddle func(*programtest.Process, *held)) {
	w.t.Helper()
	w.loaded(story...)
	before := w.dump("")
	h := w.hold("replay_journal")
	p := w.start("replay -manifest @pipeline.json -execute", "AMENDS_DATABASE_URL="+h.url)
	h.await(w.t, p)
	meddle(p, h)
	if got := p.Wait().Code; got != code || !strings.Contains(p.Stderr.String(), cause) {
		w.t.Errorf("ended with %d, want %d with %q\n%s", got, code, cause, p.Stderr)
	}
	if d := cmp.Diff(before, w.dump("")); d != "" {
		w.t.Errorf("changed (-before +after):\n%s", d)
	}
}
