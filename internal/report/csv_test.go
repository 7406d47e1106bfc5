package report_test

import (
	"encoding/csv"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/report"
)

func TestCSVKeepsEveryByte(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"plain", "1"}, {"comma,", `quo"te`}, {"line\nend", "carriage\rreturn"}, {"\r\n", "nul\x00é日本"}, {" spaces ", ""}, {"", ""}, {"=1+1", "-5"}}
	var out strings.Builder
	c := report.NewCSV(&out, "item", "close")
	for _, r := range rows {
		if err := c.Row(r...); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "item,close\nplain,1\n\"comma,\",\"quo\"\"te\"\n\"line\nend\",\"carriage\rreturn\"\n\"\r\n\",nul\x00é日本\n\" spaces \",\n,\n=1+1,-5\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	read, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil || len(read) != len(rows)+1 {
		t.Fatal(read, err)
	}
	for i, r := range rows {
		if r[0] != "\r\n" { // encoding/csv reads every line end as a line feed
			if diff := cmp.Diff(r, read[i+1]); diff != "" {
				t.Error(diff)
			}
		}
	}
	if err := c.Row("one"); err == nil {
		t.Error("a row of one field among two columns was written")
	}
}

func TestCSVOfOneColumnHasNoEmptyLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	c := report.NewCSV(&out, "item")
	if err := errors.Join(c.Row(""), c.Row("a"), c.Flush()); err != nil || out.String() != "item\n\"\"\na\n" {
		t.Errorf("%q %v", out.String(), err)
	}
}
