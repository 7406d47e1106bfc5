package engine_test

import (
	"bytes"
	"encoding/base64"
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

// TestVectors reproduces the contract's vectors byte for byte, envelopes and rejections: with one record a batch, with
// everything in one batch, and with a restart before each record.
func TestVectors(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join(absent.Vectors(t), "*", "config.json"))
	if err != nil || len(folders) < 14 {
		t.Fatalf("%d vectors, %v", len(folders), err)
	}
	for _, folder := range folders {
		folder = filepath.Dir(folder)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			for _, way := range []string{"single", "whole", "restart"} {
				runVector(t, folder, way)
			}
		})
	}
}

func runVector(t *testing.T, folder, way string) {
	t.Helper()
	cfg, err := manifest.ParseConfig(readFile(t, folder, "config.json"), "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	raw := rawRecords(t, readFile(t, folder, "raw.jsonl"))
	var envelopes, rejected []string
	for p := range ledger.Partition(cfg.Partitions) {
		l := newLine(t, cfg, p, roomy)
		recs := l.decode(raw[p]...)
		if way == "whole" {
			l.step(recs...)
		} else {
			for i := range recs {
				if way == "restart" {
					l.restart()
				}
				l.step(recs[i])
			}
		}
		for _, e := range l.envelopes() {
			envelopes = append(envelopes, fmt.Sprintf("%d\t%s", p, e))
		}
		for _, d := range l.journal {
			if d.Rejection != 0 {
				rejected = append(rejected, fmt.Sprintf("%d\t%d\t%s", p, d.Offset, d.Rejection))
			}
		}
	}
	if diff := cmp.Diff(perPartition(lines(t, folder, "envelopes.tsv")), perPartition(envelopes)); diff != "" {
		t.Errorf("%s %s: envelopes (-vector +engine):\n%s", folder, way, diff)
	}
	if diff := cmp.Diff(perPartition(lines(t, folder, "rejected.tsv")), perPartition(rejected)); diff != "" {
		t.Errorf("%s %s: rejections (-vector +engine):\n%s", folder, way, diff)
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

func lines(t testing.TB, folder, name string) []string {
	t.Helper()
	var out []string
	for _, s := range strings.Split(string(readFile(t, folder, name)), "\n") {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// perPartition groups lines that begin with a partition, keeping their order within it.
func perPartition(all []string) map[string][]string {
	out := map[string][]string{}
	for _, s := range all {
		p, _, _ := strings.Cut(s, "\t")
		out[p] = append(out[p], s)
	}
	return out
}

// rawRecords reads raw records (design.md section 9), numbering them from 0 on each partition.
func rawRecords(t testing.TB, text []byte) map[ledger.Partition][]ledger.SourceRecord {
	t.Helper()
	out := map[ledger.Partition][]ledger.SourceRecord{}
	for _, row := range bytes.Split(text, []byte("\n")) {
		if len(row) == 0 {
			continue
		}
		var r struct {
			Partition  ledger.Partition
			Key, Value *string
		}
		if err := json.Unmarshal(row, &r); err != nil {
			t.Fatal(err)
		}
		out[r.Partition] = append(out[r.Partition], ledger.SourceRecord{Partition: r.Partition, Offset: ledger.Offset(len(out[r.Partition])),
			Key: base64Bytes(t, r.Key), Value: base64Bytes(t, r.Value)})
	}
	return out
}

func base64Bytes(t testing.TB, s *string) []byte {
	t.Helper()
	if s == nil {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(*s)
	if err != nil {
		t.Fatal(err)
	}
	if b == nil {
		b = []byte{}
	}
	return b
}
