package restore_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"amends/internal/absent"
	"amends/internal/workload"
)

// SC27 on a year of real sales with their cancellations: replay finds nothing, and the rebuild equals the old view.
func TestSC27ReplayAndRebuildOfTheRetailFile(t *testing.T) {
	t.Parallel()
	f, err := os.Open(absent.Data(t, "online-retail-top60/online-retail-top60-cancelled-stockcodes.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := workload.ReadRetail(f)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, string(data.Setting.AppendFile(nil, "shop")))
	var lines []byte
	for _, a := range data.Assertions {
		lines = workload.AppendLine(lines, a)
	}
	w.Write("retail.jsonl", string(lines))
	w.filled("-file @retail.jsonl", 0)
	present := 0
	for _, r := range w.viewRows("shop") {
		if r.Present {
			present++
		}
	}
	origin, ends := w.dump("shop"), w.ends("shop-output")
	if a := w.want(0, "", "replay -manifest @pipeline.json"); !strings.HasPrefix(a.Stdout, fmt.Sprintf("SAME  %d records ", len(data.Assertions))) {
		t.Error(a.Stdout)
	}
	if a := w.want(0, "", rebuild+" -execute"); !strings.HasPrefix(a.Stdout, fmt.Sprintf("REBUILT  shop2 from shop: verify PASS  %d source records, ", len(data.Assertions))) {
		t.Error(a.Stdout)
	}
	w.equal(present, origin, ends)
}
