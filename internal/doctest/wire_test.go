package doctest

import (
	"strings"
	"testing"

	"amends/internal/manifest"
	"amends/internal/wire"
)

// The envelopes that the reference shows are those that pin the encoder.
func TestEnvelopesOfTheReference(t *testing.T) {
	t.Parallel()
	if golden := document(t, "internal/wire/testdata/worked-example.jsonl"); !strings.Contains(document(t, "docs/reference/wire-format.md"), "```text\n"+golden+"```") {
		t.Error("docs/reference/wire-format.md does not show internal/wire/testdata/worked-example.jsonl")
	}
}

// The JSON that the references show is accepted by what reads such files, and the manifest is what is written again.
func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	records := 0
	for _, b := range blocks(t, "", document(t, "docs/reference/wire-format.md")) {
		if b.language != "json" || !strings.Contains(b.text, "txn_id") {
			continue
		}
		for _, line := range strings.Split(strings.TrimSpace(b.text), "\n") {
			if _, rejection, problem := wire.ParseValue([]byte(line)); rejection != 0 {
				t.Errorf("%s: %v %v", line, rejection, problem)
			}
			records++
		}
	}
	if records != 2 {
		t.Errorf("%d source records in docs/reference/wire-format.md, want 2", records)
	}
	for _, b := range blocks(t, "", document(t, "docs/reference/manifest.md")) {
		if b.language != "json" {
			continue
		}
		if _, err := manifest.Parse([]byte(b.text)); err != nil {
			t.Errorf("docs/reference/manifest.md:%d: %v", b.line, err)
		}
		return
	}
	t.Error("docs/reference/manifest.md shows no manifest")
}
