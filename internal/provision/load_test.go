package provision_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/pipelinetest"
	"amends/internal/provision"
	"amends/internal/store"
)

// loading is a load of path into w that keeps what it emits.
func loading(w *pipelinetest.World, path string, format provision.Format) (*provision.Load, *[]provision.Coordinates) {
	var got []provision.Coordinates
	return &provision.Load{Manifest: w.Source, Topics: w.Admin, Path: path, Format: format,
		Guard: func(ctx context.Context) (provision.Guard, error) {
			g, err := w.DB.GuardSource(ctx, w.Source.Config.SourceIncarnation)
			if err != nil {
				return nil, err
			}
			return g, nil
		},
		Publish: func() (provision.Publisher, error) {
			return broker.NewProducer(w.Broker, w.Source.SourceTopic, w.Source.Config.SourceIncarnation)
		},
		Emit: func(c []provision.Coordinates) error { got = append(got, c...); return nil }}, &got
}

func ends(t *testing.T, w *pipelinetest.World) []ledger.Offset {
	t.Helper()
	topic, err := w.Admin.Topic(t.Context(), w.Source.SourceTopic)
	if err != nil {
		t.Fatal(err)
	}
	return topic.End
}

const twoKeys = `{"schema_version":1,"namespace":"demo","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":0,"stock_keys":[
	{"item":"a","location":"x","partition":0,"opening_balance":0,"threshold":null},{"item":"b","location":"x","partition":1,"opening_balance":0,"threshold":null}]}`

func value(item string, n int) string {
	return fmt.Sprintf(`{"schema":1,"txn_id":"T-%d","revision":1,"state":"active","item":"%s","location":"x","day":"2026-01-01","kind":"receipt","quantity":%d}`, n, item, n+1)
}

func TestLoadPublishesInOrder(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, twoKeys)
	var lines []string
	for i := range 2500 { // three pages
		lines = append(lines, value([]string{"a", "b"}[i%2], i))
	}
	l, got := loading(w, write(t, strings.Join(lines, "\n")), provision.JSONL) // the last line has no end
	n, err := l.Run(t.Context())
	if err != nil || n != 2500 {
		t.Fatalf("%d %v", n, err)
	}
	for i, c := range *got {
		if c != (provision.Coordinates{TxnID: fmt.Sprintf("T-%d", i), Revision: 1, Offset: ledger.Offset(i / 2), Line: int64(i + 1), Partition: ledger.Partition(i % 2)}) {
			t.Fatalf("line %d: %+v", i+1, c)
		}
	}
	if diff := cmp.Diff([]ledger.Offset{1250, 1250}, ends(t, w)); diff != "" {
		t.Error(diff)
	}
	g, err := w.DB.GuardSource(t.Context(), w.Source.Config.SourceIncarnation)
	if err != nil {
		t.Fatalf("the guard was not released: %v", err)
	}
	if _, err := l.Run(t.Context()); !errors.Is(err, store.ErrServiceBusy) {
		t.Errorf("a second load at the same time: %v", err)
	}
	if err := g.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestLoadRefusesTheWholeFile(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, twoKeys)
	good := value("a", 1)
	for name, c := range map[string]struct {
		line   string
		code   string
		column int
	}{
		"empty line":      {"", "MALFORMED", 1},
		"broken":          {`{"schema":1`, "MALFORMED", 12},
		"byte order mark": {"\ufeff" + good, "MALFORMED", 1},
		"other schema":    {strings.Replace(good, `"schema":1`, `"schema":2`, 1), "UNSUPPORTED_SCHEMA", 11},
		"unknown member":  {strings.Replace(good, `"kind"`, `"Kind"`, 1), "MALFORMED", strings.Index(good, `kind"`) + 1},
		"minus":           {strings.Replace(good, `"quantity":2`, `"quantity":-2`, 1), "MALFORMED", strings.Index(good, `:2}`) + 2},
		"zero":            {strings.Replace(good, `"quantity":2`, `"quantity":0`, 1), "INVALID_VALUE", strings.Index(good, `:2}`) + 2},
		"C35":             {strings.Replace(good, `"quantity":2`, `"quantity":327267367867168100000`, 1), "INVALID_VALUE", strings.Index(good, `:2}`) + 2},
		"horizon":         {strings.Replace(good, "2026-01-01", "2025-12-31", 1), "OUT_OF_HORIZON", 1},
		"past horizon":    {strings.Replace(good, "2026-01-01", "2126-01-02", 1), "OUT_OF_HORIZON", 1},
		"unknown key":     {strings.Replace(good, `"item":"a"`, `"item":"c"`, 1), "UNKNOWN_KEY", 1},
		"too large":       {good + strings.Repeat(" ", ledger.MaxValueBytes), "TOO_LARGE", ledger.MaxValueBytes + 1},
	} {
		l, _ := loading(w, write(t, good+"\n"+c.line+"\n"+good+"\n"), provision.JSONL)
		_, err := l.Run(t.Context())
		var refused *provision.RefusedFile
		if !errors.As(err, &refused) || refused.Count != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p := refused.Problems[0]; p.Line != 2 || p.Code != c.code || p.Column != c.column {
			t.Errorf("%s: %v, want %s at column %d", name, p, c.code, c.column)
		}
	}
	if diff := cmp.Diff([]ledger.Offset{0, 0}, ends(t, w)); diff != "" {
		t.Errorf("something was published: %s", diff)
	}
	largest := good + strings.Repeat(" ", ledger.MaxValueBytes-len(good))
	l, _ := loading(w, write(t, largest+"\n"), provision.JSONL)
	if n, err := l.Run(t.Context()); n != 1 || err != nil {
		t.Errorf("a value at the limit: %d %v", n, err)
	}
}

func TestLoadRefusesListsTheFirstProblems(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, "")
	l, _ := loading(w, write(t, strings.Repeat("x\n", 2500)), provision.JSONL)
	_, err := l.Run(t.Context())
	var refused *provision.RefusedFile
	if !errors.As(err, &refused) || refused.Count != 2500 || len(refused.Problems) != 10 {
		t.Errorf("%v", err)
	}
}

func TestLoadRaw(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, "")
	b := base64.StdEncoding.EncodeToString
	file := `{"partition":1,"key":null,"value":"` + b([]byte("poison\xff")) + `"}` + "\n" +
		`{ "value" : null, "key":"", "partition":0}` + "\n" +
		`{"partition":0,"key":"` + b([]byte("k")) + `","value":"` + b([]byte(pipelinetest.Before[0])) + `"}` + "\n"
	l, got := loading(w, write(t, file), provision.Raw)
	if _, err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]provision.Coordinates{{Partition: 1, Line: 1}, {Line: 2}, {Offset: 1, Line: 3, TxnID: "T-1", Revision: 1}}, *got); diff != "" {
		t.Error(diff)
	}
	r, err := broker.NewReader(w.Broker, w.Source.SourceTopic, w.Source.Config.SourceIncarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var records []ledger.SourceRecord
	for p, end := range ends(t, w) {
		if _, err := r.ReadTo(t.Context(), ledger.Partition(p), 0, ledger.Frontier(end), func(r ledger.SourceRecord) error {
			r.Timestamp = 0
			records = append(records, r)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]ledger.SourceRecord{{Key: []byte{}}, {Offset: 1, Key: []byte("k"), Value: []byte(pipelinetest.Before[0])},
		{Partition: 1, Value: []byte("poison\xff")}}, records); diff != "" {
		t.Error(diff)
	}
}

func TestLoadRawRefuses(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, "")
	for _, line := range []string{`{}`, `{"partition":0,"key":null}`, `{"partition":2,"key":null,"value":null}`, `{"partition":-1,"key":null,"value":null}`,
		`{"partition":0,"key":1,"value":null}`, `{"partition":0,"key":"a","value":null}`, `{"partition":0,"key":"YQ","value":null}`,
		`{"partition":0,"key":"YQ=\n=","value":null}`, `{"partition":0,"key":"_w==","value":null}`, `{"partition":0,"key":"YR==","value":null}`,
		`{"partition":0,"key":null,"value":null,"x":1}`, `{"partition":0,"Key":null,"key":null,"value":null}`, `{"partition":0,"key":null,"key":null,"value":null}`,
		`{"partition":null,"key":null,"value":null}`, `{"partition":0.5,"key":null,"value":null}`, `[]`, `{"partition":0,"key":null,"value":null} {}`, ``} {
		l, _ := loading(w, write(t, line+"\n"), provision.Raw)
		_, err := l.Run(t.Context())
		var refused *provision.RefusedFile
		if !errors.As(err, &refused) || refused.Problems[0].Line != 1 || refused.Problems[0].Column < 1 {
			t.Errorf("%s: %v", line, err)
		}
		if reason := refused.Problems[0].Reason; strings.Contains(reason, "json") || strings.Contains(reason, "Go ") {
			t.Errorf("%s: the reason speaks of the program, not of the file: %s", line, reason)
		}
	}
}

func TestLoadNoticesAChangedFile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(string) string{
		"a byte":   func(s string) string { return strings.Replace(s, `"T-2100"`, `"X-2100"`, 1) },
		"grew":     func(s string) string { return s + value("a", 9999) + "\n" },
		"shrank":   func(s string) string { return s[:strings.LastIndex(s[:len(s)-1], "\n")+1] },
		"emptied":  func(string) string { return "" },
		"line end": func(s string) string { return strings.TrimSuffix(s, "\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pipelinetest.New(t, twoKeys)
			var b strings.Builder
			for i := range 2500 {
				b.WriteString(value("a", i) + "\n")
			}
			path := write(t, b.String())
			l, got := loading(w, path, provision.JSONL)
			publish := l.Publish
			l.Publish = func() (provision.Publisher, error) {
				if err := os.WriteFile(path, []byte(change(b.String())), 0o600); err != nil {
					t.Error(err)
				}
				return publish()
			}
			_, err := l.Run(t.Context())
			var stopped *provision.LoadError
			if !errors.Is(err, provision.ErrChanged) || !errors.As(err, &stopped) || stopped.Acknowledged != int64(len(*got)) {
				t.Errorf("%v after %d records", err, len(*got))
			}
			for _, c := range *got {
				if strings.HasPrefix(c.TxnID, "X") || c.TxnID == "T-9999" {
					t.Error("what was not validated was published")
				}
			}
		})
	}
}

// breaking publishes some records, then loses the reply of one.
type breaking struct {
	provision.Publisher
	left int
}

func (b *breaking) Produce(ctx context.Context, p ledger.Partition, m []broker.Message) ([]ledger.Offset, error) {
	if len(m) <= b.left {
		b.left -= len(m)
		return b.Publisher.Produce(ctx, p, m)
	}
	got, err := b.Publisher.Produce(ctx, p, m[:b.left])
	return got, errors.Join(err, broker.ErrUnknownOutcome)
}

func TestLoadUnknownSendStopsWithTheLastLine(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, twoKeys)
	var b strings.Builder
	for i := range 1500 {
		b.WriteString(value("a", i) + "\n")
	}
	l, got := loading(w, write(t, b.String()), provision.JSONL)
	publish := l.Publish
	l.Publish = func() (provision.Publisher, error) {
		p, err := publish()
		return &breaking{p, 1200}, err
	}
	_, err := l.Run(t.Context())
	var stopped *provision.LoadError
	if !errors.Is(err, broker.ErrUnknownOutcome) || !errors.As(err, &stopped) || stopped.Acknowledged != 1200 || len(*got) != 1200 {
		t.Fatalf("%v, %d emitted", err, len(*got))
	}
	if !strings.Contains(err.Error(), "last acknowledged line 1200") || !strings.Contains(err.Error(), "again is safe") {
		t.Errorf("%v", err)
	}
	l.Publish = publish
	if _, err := l.Run(t.Context()); err != nil {
		t.Errorf("run again: %v", err)
	}
}

func TestLoadChecksIdentityAndFile(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, "")
	var file *provision.FileError
	l, _ := loading(w, t.TempDir(), provision.JSONL)
	if _, err := l.Run(t.Context()); !errors.As(err, &file) {
		t.Errorf("a directory: %v", err)
	}
	l, _ = loading(w, "/nowhere", provision.JSONL)
	if _, err := l.Run(t.Context()); !errors.As(err, &file) {
		t.Errorf("no file: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	l, _ = loading(w, pipe, provision.JSONL)
	if _, err := l.Run(t.Context()); !errors.As(err, &file) || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe that nobody writes: %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	l, _ = loading(w, write(t, value("widget", 1)), provision.JSONL)
	if _, err := l.Run(stopped); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing was published") {
		t.Errorf("stopped while the file is checked: %v", err)
	}
	l, _ = loading(w, write(t, ""), provision.JSONL)
	if n, err := l.Run(t.Context()); n != 0 || err != nil {
		t.Errorf("an empty file: %d %v", n, err)
	}
	l, _ = loading(w, write(t, pipelinetest.Before[0]), provision.JSONL)
	elsewhere := *w.Source
	elsewhere.SourceTopic = "amends-test-output"
	l.Manifest = &elsewhere
	var identity *broker.IdentityError
	if _, err := l.Run(t.Context()); !errors.As(err, &identity) {
		t.Errorf("another topic: %v", err)
	}
}
