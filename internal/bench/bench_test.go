package bench

import (
	"bytes"
	"testing"
	"time"

	"amends/internal/workload"
)

// TestPeersPublishTheSame runs small workloads through all three pipelines; what they publish is compared inside.
func TestPeersPublishTheSame(t *testing.T) {
	o := Options{Laws: []workload.Law{workload.Short, workload.LongDeep}, Records: 400, Keys: 40, Limit: 60 * time.Second, Dir: t.TempDir(), Say: func(s string) { t.Log(s) }}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Results {
		if x.Amends.Records != 400 || x.Trigger.Records != 400 || x.Serial.Records == 0 || x.Compared == 0 {
			t.Errorf("%s measured %+v", x.Workload, x)
		}
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + text.String())
}
