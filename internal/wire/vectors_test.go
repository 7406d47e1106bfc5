package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/absent"
	"amends/internal/ledger"
	"amends/internal/manifest"
)

const testIncarnation = "kafka:00112233445566778899aabbccddeeff"

// rawLine is one line of a raw file (design section 9).
type rawLine struct {
	Partition ledger.Partition `json:"partition"`
	Key       *[]byte          `json:"key"`
	Value     *[]byte          `json:"value"`
}

func vectorFolders(t testing.TB) []string {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(absent.Vectors(t), "*", "config.json"))
	if err != nil || len(folders) < 14 {
		t.Fatalf("%d vectors, want at least 14 (%v)", len(folders), err)
	}
	for i := range folders {
		folders[i] = filepath.Dir(folders[i])
	}
	return folders
}

// readVector returns the configuration and the source records of a vector, with their offsets.
func readVector(t testing.TB, folder string) (*manifest.Config, []ledger.SourceRecord) {
	t.Helper()
	cfg, err := manifest.ParseConfig(readFile(t, folder, "config.json"), testIncarnation)
	if err != nil {
		t.Fatal(err)
	}
	var recs []ledger.SourceRecord
	next := map[ledger.Partition]ledger.Offset{}
	for _, line := range lines(readFile(t, folder, "raw.jsonl")) {
		var raw rawLine
		if err := json.Unmarshal([]byte(line), &raw); err != nil {
			t.Fatal(err)
		}
		rec := ledger.SourceRecord{Partition: raw.Partition, Offset: next[raw.Partition]}
		if raw.Key != nil {
			rec.Key = *raw.Key
		}
		if raw.Value != nil {
			rec.Value = *raw.Value
		}
		next[raw.Partition]++
		recs = append(recs, rec)
	}
	return cfg, recs
}

func TestVectorsAreRejectedExactly(t *testing.T) {
	for _, folder := range vectorFolders(t) {
		cfg, recs := readVector(t, folder)
		d := NewDecoder(cfg)
		var got []string
		for _, rec := range recs {
			out := d.Decode(rec)
			if (out.Rejection == 0) != (out.Evidence == nil) || (out.Rejection == 0) != (out.Assertion != ledger.Assertion{}) {
				t.Errorf("%s: %d/%d has neither or both of assertion and evidence", folder, rec.Partition, rec.Offset)
			}
			if out.Rejection != 0 {
				got = append(got, fmt.Sprintf("%d\t%d\t%v", rec.Partition, rec.Offset, out.Rejection))
			}
		}
		if d := cmp.Diff(lines(readFile(t, folder, "rejected.tsv")), got); d != "" {
			t.Errorf("%s: rejected (-want +got)\n%s", filepath.Base(folder), d)
		}
	}
}

// Each accepted value of the vectors is written again and read back as the same assertion.
func TestVectorsAssertionsRoundTrip(t *testing.T) {
	for _, folder := range vectorFolders(t) {
		cfg, recs := readVector(t, folder)
		d := NewDecoder(cfg)
		for _, rec := range recs {
			if out := d.Decode(rec); out.Rejection == 0 {
				rec.Key = AppendKey(nil, out.Assertion.Key)
				rec.Value = AppendAssertion(nil, out.Assertion)
				if again := d.Decode(rec); again.Rejection != 0 || again.Assertion != out.Assertion {
					t.Errorf("%s: %s reads back as %v %+v", folder, rec.Value, again.Rejection, again.Assertion)
				}
			}
		}
	}
}

func TestVectorsEnvelopesRoundTrip(t *testing.T) {
	for _, folder := range vectorFolders(t) {
		for _, line := range lines(readFile(t, folder, "envelopes.tsv")) {
			partition, text, _ := strings.Cut(line, "\t")
			e, err := DecodeEnvelope([]byte(text))
			if err != nil {
				t.Errorf("%s: %s: %v", folder, text, err)
				continue
			}
			if got := string(AppendEnvelope(nil, &e)); got != text {
				t.Errorf("%s: encoded again (-want +got)\n%s", folder, cmp.Diff(text, got))
			}
			if got := fmt.Sprint(e.Cause.Partition); got != partition {
				t.Errorf("%s: partition %s, want %s", folder, got, partition)
			}
		}
	}
}

func readFile(t testing.TB, folder, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func lines(b []byte) []string {
	var all []string
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		all = append(all, s.Text())
	}
	return all
}
