package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/absent"
	"amends/internal/broker"
	"amends/internal/kafkatest"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
	"amends/internal/store"
	"amends/internal/store/postgres"
)

// Every vector of the contract through the whole path: the raw loader, two workers, relay and view on a real broker and a
// real database. What lies in the output topic is the vector's envelopes byte for byte, what is quarantined its rejections
// with their exact bytes (SC15, SC28).
func TestVectorsThroughTheWholePath(t *testing.T) {
	t.Parallel()
	root := absent.Vectors(t)
	folders, err := filepath.Glob(filepath.Join(root, "*", "config.json"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no vectors in %s: %v", root, err)
	}
	brokers, database := kafkatest.Brokers(t), pgtest.New(t)
	for _, config := range folders {
		folder := filepath.Dir(config)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			s := newShell(t, map[string]string{"AMENDS_DATABASE_URL": database, "AMENDS_BROKERS": strings.Join(brokers, ",")})
			m := throughThePath(t, s, brokers, folder)
			if diff := cmp.Diff(byPartition(t, filepath.Join(folder, "envelopes.tsv")), published(t, brokers, m)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(byPartition(t, filepath.Join(folder, "rejected.tsv")), quarantined(t, database, m, rawRecords(t, filepath.Join(folder, "raw.jsonl")))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// byPartition returns a vector's lines, which stand in the order of its records, with those of each partition together.
func byPartition(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(raw), "\n")
	slices.SortStableFunc(lines[:len(lines)-1], func(a, b string) int {
		return strings.Compare(a[:strings.IndexByte(a, '\t')], b[:strings.IndexByte(b, '\t')])
	})
	return strings.Join(lines, "")
}

// throughThePath creates a namespace of the folder's configuration, loads its records while all roles run, and verifies.
func throughThePath(t *testing.T, s *shell, brokers []string, folder string) *manifest.Manifest {
	t.Helper()
	config, err := os.ReadFile(filepath.Join(folder, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(config), `"namespace": "`)
	namespace, _, _ := strings.Cut(after, `"`)
	a := s.Want(0, "", fmt.Sprintf("amends source create -namespace %s -topic %s -config %s", namespace, kafkatest.Topic(t, brokers), filepath.Join(folder, "config.json")))
	s.Write("source.json", a.Stdout)
	a = s.Want(0, "", "amends output create -manifest @source.json -topic "+kafkatest.Topic(t, brokers))
	s.Write("pipeline.json", a.Stdout)
	m, err := manifest.Parse([]byte(a.Stdout))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan programtest.Answer, 1)
	go func() { ended <- s.Call(ctx, "amends run -manifest @pipeline.json -workers 2") }()
	s.Want(0, "", "amends source load -manifest @pipeline.json -format raw -file "+filepath.Join(folder, "raw.jsonl"))
	if a := s.Call(t.Context(), fmt.Sprintf("amends verify -manifest @pipeline.json -deep -timeout %v", programtest.Deadline)); a.Code != 0 && a.Code != 4 {
		t.Errorf("verify ended with %d: %s", a.Code, a.Cause())
	}
	cancel()
	if a := <-ended; a.Code != 0 {
		t.Errorf("the roles ended with %d: %s", a.Code, a.Stderr)
	}
	return m
}

// published writes what the output topic holds as the vectors do: partition, tab, envelope.
func published(t *testing.T, brokers []string, m *manifest.Manifest) string {
	t.Helper()
	o := broker.Options{Brokers: brokers}
	admin, err := broker.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	ends, err := admin.Stable(t.Context(), m.Output.Topic)
	if err != nil {
		t.Fatal(err)
	}
	r, err := broker.NewReader(o, m.Output.Topic, m.Output.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b strings.Builder
	for p, end := range ends {
		if _, err := r.ReadTo(t.Context(), ledger.Partition(p), 0, ledger.Frontier(end), func(rec ledger.SourceRecord) error {
			fmt.Fprintf(&b, "%d\t%s\n", p, rec.Value)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// rawRecord is a line of raw.jsonl; nil is absent.
type rawRecord struct {
	Key, Value []byte
	Partition  ledger.Partition
}

// rawRecords reads a vector's records: those of a partition have offsets 0, 1, 2 …
func rawRecords(t *testing.T, path string) map[ledger.Partition][]rawRecord {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[ledger.Partition][]rawRecord{}
	for _, row := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		var r rawRecord
		if err := json.Unmarshal([]byte(row), &r); err != nil {
			t.Fatal(err)
		}
		out[r.Partition] = append(out[r.Partition], r)
	}
	return out
}

// quarantined writes what the journal rejected as the vectors do: partition, offset, code. The kept bytes must be the record's.
func quarantined(t *testing.T, database string, m *manifest.Manifest, raw map[ledger.Partition][]rawRecord) string {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: database, AllowFsyncOff: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ns, err := db.Namespace(t.Context(), m.Config)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	err = ns.Snapshot(t.Context(), func(x store.Snapshot) error {
		for p := range ledger.Partition(m.Config.Partitions) {
			err := x.Journal(t.Context(), p, func(d *ledger.Decision) error {
				if d.Rejection != 0 {
					fmt.Fprintf(&b, "%d\t%d\t%v\n", p, d.Offset, d.Rejection)
					if r := raw[p][d.Offset]; d.Evidence == nil || !kept(d.Evidence.Key, r.Key, ledger.MaxKeyBytes) || !kept(d.Evidence.Value, r.Value, ledger.MaxValueBytes) {
						t.Errorf("partition %d offset %d: the evidence is not the record's bytes", p, d.Offset)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// kept reports whether evidence holds a record's bytes, of more than the limit the first ones.
func kept(evidence, bytes []byte, limit int) bool {
	return (evidence == nil) == (bytes == nil) && string(evidence) == string(bytes[:min(len(bytes), limit)])
}
