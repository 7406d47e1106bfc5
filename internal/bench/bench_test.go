package bench

import (
	"bytes"
	"os"
	"testing"
	"time"

	"amends/internal/workload"
)

// TestPeersPublishTheSame runs small workloads through all three pipelines; what they publish is compared inside.
func TestPeersPublishTheSame(t *testing.T) {
	o := Options{What: []Part{Path}, Laws: []workload.Law{workload.Short, workload.LongDeep}, Records: 400, Keys: 40, Limit: 60 * time.Second, Dir: t.TempDir(), Say: func(s string) { t.Log(s) }}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var amends, trigger, serial time.Duration
	for _, x := range r.Results {
		if x.Amends.Records != 400 || x.Trigger.Records != 400 || x.Serial.Records == 0 || x.Compared == 0 {
			t.Errorf("%s measured %+v", x.Workload, x)
		}
		amends, trigger, serial = amends+x.Amends.Processor, trigger+x.Trigger.Processor, serial+x.Serial.Processor
	}
	// Together: one workload alone may take a fast machine less than a tick of each process.
	if _, err := os.Stat("/proc/self/stat"); err == nil && (amends <= 0 || trigger <= 0 || serial <= 0) {
		t.Errorf("processor time: amends %v, trigger %v, serial %v", amends, trigger, serial)
	}
	t.Logf("processor time: amends %v, trigger %v, serial %v", amends, trigger, serial)
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + text.String())
}

// TestPartsWithoutPeers runs the other parts small.
func TestPartsWithoutPeers(t *testing.T) {
	o := Options{What: []Part{WorkerAlone, Corrections, Takeovers}, Laws: []workload.Law{workload.LongDeep}, Records: 400, Keys: 40, Movements: 500,
		Transactions: 4_000, Dir: t.TempDir(), Say: func(s string) { t.Log(s) }}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if w := r.Worker; len(w) != 1 || w[0].Records != 5*400 || w[0].Outputs <= w[0].Records || w[0].WAL <= 0 || r.Copy.Records != 5*400 {
		t.Errorf("worker %+v, copy %+v", w, r.Copy)
	}
	if c := r.Corrections; len(c) != 2 || c[0].Outputs < 365 || c[1].Outputs < 500 || c[1].Median <= 0 || c[1].Worst < c[1].Median {
		t.Errorf("corrections %+v", c)
	}
	if x := r.Takeover; x == nil || x.Transactions != 4_000 || x.Keys != 2 || x.One <= 0 || x.Batch <= 0 {
		t.Errorf("takeover %+v", x)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + text.String())
}
