package campaign

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"amends/internal/pace"
	"amends/internal/sim"
	"amends/internal/sim/fault"
)

// TestCampaign is the smoke of T1: seeded schedules with every kind of fault among them, nothing broken. The number of
// schedules is AMENDS_SIM_SCHEDULES.
// Shows I1, I2, I3, I4, I7, I8, I9, I10, I15, I16, I17, I18, I19, I21, I23.
func TestCampaign(t *testing.T) {
	o := Options{Seed: 1, Schedules: pace.Of(4_000), Threads: 2, Events: 30}
	if v := os.Getenv("AMENDS_SIM_SCHEDULES"); v != "" {
		var err error
		if o.Schedules, err = strconv.Atoi(v); err != nil || o.Schedules < 1 {
			t.Fatalf("AMENDS_SIM_SCHEDULES=%s is no number of schedules", v)
		}
	}
	o.Floor, o.Distinct = int64(o.Schedules/200), o.Schedules*99/100
	corpus, err := sim.NewCorpus()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), corpus, o)
	if err != nil {
		t.Error(err)
	}
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		t.Log("figure: " + strings.TrimSpace(line))
	}
	for i := range r.Failures {
		t.Errorf("seed %d: %s: answers %v", r.Failures[i].Seed, r.Failures[i].Text, r.Failures[i].Answers)
	}
}

// A run below any floor fails and says what was too little.
func TestFloors(t *testing.T) {
	corpus, err := sim.NewCorpus()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		options Options
		below   string
	}{
		{Options{Floor: 1_000_000}, fault.LostWritten.String()},
		{Options{Distinct: 1_000}, "distinct"},
		{Options{Events: 1e6}, "events"},
	} {
		o := c.options
		o.Schedules, o.Threads = 20, 1
		_, err := Run(t.Context(), corpus, o)
		var floor *FloorError
		if !errors.As(err, &floor) || !strings.Contains(floor.Error(), c.below) {
			t.Errorf("%+v gives %v, want a floor of %s", o, err, c.below)
		}
	}
}
