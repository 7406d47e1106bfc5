package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// script is a scenario of package engine's testdata: keys, records, and what each does, all derived by hand (the format is
// described beside its own test). Here its keys get names of their own, so that every script runs in one namespace.
type script struct {
	name  string
	keys  map[string]string // name in the script to item
	lines []string          // comments aside, as the engine's test compares them
	first string            // the key of records that name none
}

func readScript(t *testing.T, file string) *script {
	t.Helper()
	s := &script{name: strings.TrimSuffix(filepath.Base(file), ".txt"), keys: map[string]string{}}
	for _, text := range strings.Split(readFile(t, file), "\n") {
		text, _, _ = strings.Cut(text, "#")
		if f := strings.Fields(text); len(f) > 0 {
			s.lines = append(s.lines, strings.Join(f, " "))
		}
	}
	return s
}

// configure takes the lines of keys away and returns the keys as objects of S2.
func (s *script) configure(partition int) []string {
	var objects []string
	var rest []string
	for _, l := range s.lines {
		f := strings.Fields(l)
		if f[0] != "key" {
			rest = append(rest, l)
			continue
		}
		objects = append(objects, s.key(f[1], f[3], strings.Replace(f[5], "none", "null", 1), partition))
	}
	if objects == nil {
		objects = append(objects, s.key("widget", "0", "60", partition))
	}
	s.lines = rest
	return objects
}

func (s *script) key(name, opening, threshold string, partition int) string {
	if s.first == "" {
		s.first = name
	}
	s.keys[name] = s.name + " " + name
	return fmt.Sprintf(`{"item":%q,"location":"berlin","partition":%d,"opening_balance":%s,"threshold":%s}`, s.keys[name], partition, opening, threshold)
}

// value is the source record of a line that begins with >.
func (s *script) value(t *testing.T, line string) string {
	f := strings.Fields(line)[1:]
	item := s.keys[s.first]
	if other, ok := s.keys[f[0]]; ok {
		item, f = other, f[1:]
	}
	revision, err := strconv.Atoi(f[1][1:])
	if err != nil {
		t.Fatalf("%s: %s: %v", s.name, line, err)
	}
	if f[2] == "cancelled" {
		return cancelled(item, "berlin", f[0], revision)
	}
	quantity, err := strconv.ParseInt(f[3], 10, 64)
	if err != nil {
		t.Fatalf("%s: %s: %v", s.name, line, err)
	}
	n, err := strconv.Atoi(f[4][1:])
	if err != nil {
		t.Fatalf("%s: %s: %v", s.name, line, err)
	}
	return active(item, "berlin", f[0], revision, f[2], quantity, firstDay().AddDate(0, 0, n-1).Format(time.DateOnly))
}

func firstDay() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// dayNumber writes a date as the scripts do.
func dayNumber(t *testing.T, date string) string {
	d, err := time.Parse(time.DateOnly, date)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("@%d", int(d.Sub(firstDay()).Hours()/24)+1)
}

// message is an envelope as a consumer reads it (S8).
type message struct {
	Output  []string
	Payload *struct {
		Close, Previous int64
		Threshold       *int64
		Status          string
		Reasons         []struct {
			Code     string
			TxnID    string `json:"txn_id"`
			Day      string
			Revision int64
		}
		More int
	}
	Cause struct {
		Partition int
		Offset    int64
	}
	Version int64
	Present bool
}

// words writes a message as the scripts do.
func (m *message) words(t *testing.T) string {
	switch {
	case m.Output[0] == "status":
		text := fmt.Sprintf("status v%d %s", m.Version, m.Payload.Status)
		for _, r := range m.Payload.Reasons {
			if r.Code == "AMBIGUOUS" {
				text += fmt.Sprintf(" %s %s r%d", r.Code, r.TxnID, r.Revision)
			} else {
				text += fmt.Sprintf(" %s %s", r.Code, dayNumber(t, r.Day))
			}
		}
		return text
	case !m.Present:
		return fmt.Sprintf("%s %s v%d withdrawn", m.Output[0], dayNumber(t, m.Output[3]), m.Version)
	case m.Output[0] == "alert":
		return fmt.Sprintf("alert %s v%d %d -> %d", dayNumber(t, m.Output[3]), m.Version, m.Payload.Previous, m.Payload.Close)
	}
	return fmt.Sprintf("balance %s v%d %d", dayNumber(t, m.Output[3]), m.Version, m.Payload.Close)
}

// Every script of the engine through the whole path, in one namespace: loader, worker, relay, view and verification. For each
// record the journal holds the class, and the topic the outputs, that the script states. Subtests carry the ids.
// Shows I10.
func TestScriptsOnTheWholePath(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../engine/testdata/scripts/*.txt")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	var scripts []*script
	var keys, values []string
	for i, file := range files {
		s := readScript(t, file)
		keys = append(keys, s.configure(i%2)...)
		scripts = append(scripts, s)
	}
	s := newSpace(t, `{"schema_version":1,"namespace":"accepted","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":3,"stock_keys":[`+strings.Join(keys, ",")+`]}`)
	s.roles()
	for _, c := range scripts {
		for _, l := range c.lines {
			if strings.HasPrefix(l, ">") {
				values = append(values, c.value(t, l))
			}
		}
	}
	coordinates := strings.Split(strings.TrimSpace(s.load(values...)), "\n")
	s.verify(0) // every script ends READY
	s.viewIsTheFold(t)
	happened := s.happened(t)
	for _, c := range scripts {
		var got []string
		for _, l := range c.lines {
			if strings.HasPrefix(l, ">") {
				f := strings.Fields(coordinates[0])
				coordinates = coordinates[1:]
				got = append(append(got, l), happened[f[0]+" "+f[1]]...)
			}
		}
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.lines, got); d != "" {
				t.Errorf("(-by hand +whole path):\n%s", d)
			}
		})
	}
}

// viewIsTheFold compares what view show says with a fold of the output topic: the last envelope of each output (I10).
func (s *space) viewIsTheFold(t *testing.T) {
	t.Helper()
	last := map[string]string{}
	for p := range int32(2) {
		for _, text := range s.published(p) {
			var m message
			if err := json.Unmarshal([]byte(text), &m); err != nil {
				t.Fatal(err)
			}
			last[fmt.Sprintf("%q", m.Output)] = text
		}
	}
	var shown struct{ Envelopes []json.RawMessage }
	if err := json.Unmarshal([]byte(s.run("amendsctl view-show -manifest pipeline.json -o json")), &shown); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range shown.Envelopes {
		got = append(got, string(e))
	}
	slices.Sort(got)
	if d := cmp.Diff(slices.Sorted(maps.Values(last)), got); d != "" {
		t.Errorf("I10 (-fold of the topic +view):\n%s", d)
	}
}

// happened returns the class and the outputs of each source record, by partition and offset.
func (s *space) happened(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, row := range s.query(`SELECT partition, source_offset, (ARRAY['DUPLICATE', 'APPLIED', 'CONFLICT', 'STALE', 'STALE_CONFLICT'])[class] AS c FROM amends.journal`) {
		f := strings.Split(row, "|")
		out[f[0]+" "+f[1]] = []string{f[2]}
	}
	for p := range int32(2) {
		for _, text := range s.published(p) {
			var m message
			if err := json.Unmarshal([]byte(text), &m); err != nil {
				t.Fatal(err)
			}
			at := fmt.Sprintf("%d %d", m.Cause.Partition, m.Cause.Offset)
			out[at] = append(out[at], m.words(t))
		}
	}
	return out
}
