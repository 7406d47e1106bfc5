package inspect_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/inspect"
	"amends/internal/pipelinetest"
	"amends/internal/store"
	"amends/internal/store/memory"
)

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	want, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
	if !json.Valid(got) {
		t.Error("not JSON")
	}
}

func showJSON(t *testing.T, w *pipelinetest.World) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := inspect.ShowJSON(t.Context(), &out, "demo", w.NS); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestSC03ShowJSON(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, "")
	w.Values(t, pipelinetest.Before...)
	w.Values(t, pipelinetest.Correction...)
	w.Values(t, pipelinetest.CancelLastDay...)
	w.Settle(t)
	golden(t, "worked-example.json", showJSON(t, w))
}

func TestShowJSONErrors(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, "")
	w.Stop(t, 1, store.Violation{Partition: 1, Reason: `bytes "x"`, Value: []byte("hi")})
	golden(t, "stopped.json", showJSON(t, w))
}

func TestShowUnbound(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, "")
	ns, err := memory.New().Init(t.Context(), w.Source.Config, w.Source.SourceTopic)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := inspect.ShowJSON(t.Context(), &out, "demo", ns); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `{"partition":0,"frontier":0,"sequence":-1}`) {
		t.Error(out.String())
	}
	out.Reset()
	if err := inspect.ShowText(t.Context(), &out, "demo", 0, ns); err != nil || !strings.Contains(out.String(), "not bound") {
		t.Error(err, out.String())
	}
}

func TestShowText(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, "")
	w.Values(t, pipelinetest.Before...)
	w.Values(t, pipelinetest.Correction...)
	w.Values(t, pipelinetest.CancelLastDay...)
	w.Settle(t)
	w.Values(t, strings.Replace(pipelinetest.Correction[0], ":70}", ":71}", 1))
	w.Settle(t)
	w.Stop(t, 1, store.Violation{Partition: 1, Reason: "test", Key: []byte("\x1b[31m")})
	var out bytes.Buffer
	if err := inspect.ShowText(t.Context(), &out, "demo", 0, w.NS); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"demo: live snapshot, not a verification",
		"balance  widget  berlin    2026-01-01  70                        2        0/3 T-1 r2",
		"alert    widget  berlin    2026-01-02  70 -> 50 below 60         1        0/3 T-1 r2",
		"balance  widget  berlin    2026-01-03  withdrawn                 3        0/4 T-3 r2",
		"status   widget  berlin    -           BLOCKED AMBIGUOUS T-1 r2  2        0/5 T-1 r2",
		`protocol error: partition 1 offset 0: test`, `key   "\x1b[31m"`, "value absent", "stopped by a protocol error", "up to date",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
	out.Reset()
	if err := inspect.ShowText(t.Context(), &out, "demo", 2, w.NS); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"2026-01-01  0.70   ", "2026-01-02  0.70 -> 0.50 below 0.60   ", "2026-01-03  withdrawn   "} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("scale 2: no %q in\n%s", line, out.String())
		}
	}
}

// SC37: what could deceive a terminal is shown escaped.
func TestSC37NameIsSafe(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"widget": "widget", "Äpfel": "Äpfel", "85123A": "85123A", "<b>&": "<b>&", "a\x00b": `"a\x00b"`, "\x1b[2J": `"\x1b[2J"`, "a b": `"a b"`,
		"\u202eevil": `"\u202eevil"`, `a"b`: `"a\"b"`, `a\b`: `"a\\b"`, "a\u00a0b": `"a\u00a0b"`, "e\u0301": `"e\u0301"`, "\u200b": `"\u200b"`, "😀": "😀",
	} {
		if got := inspect.Name(in); got != want {
			t.Errorf("Name(%q) = %s, want %s", in, got, want)
		}
	}
}
