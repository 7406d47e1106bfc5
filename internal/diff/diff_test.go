package diff

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/fold"
	"amends/internal/ledger"
	"amends/internal/manifest"
)

var origin, _ = ledger.DateOf(2026, 1, 1)

func receipt(quantity int64, at int) ledger.Payload {
	return ledger.Payload{State: ledger.Active, Kind: ledger.Receipt, Quantity: ledger.Quantity(quantity), Day: origin + ledger.Day(at)}
}

func balance(at int, v ledger.Version, closed int64) ledger.Change {
	return ledger.Change{Kind: ledger.Balance, Day: origin + ledger.Day(at), Version: v, Present: true, Close: closed}
}

func alert(at int, v ledger.Version, previous, closed int64) ledger.Change {
	return ledger.Change{Kind: ledger.Alert, Day: origin + ledger.Day(at), Version: v, Present: true, Close: closed, Previous: previous}
}

func gone(kind ledger.OutputKind, at int, v ledger.Version) ledger.Change {
	return ledger.Change{Kind: kind, Day: origin + ledger.Day(at), Version: v}
}

// TestReconcile: S8, each way in which an output may differ, by day, the balance before the alert.
func TestReconcile(t *testing.T) {
	t.Parallel()
	threshold := int64(60)
	days := fold.New(origin)
	days.Add(receipt(10, 0))
	days.Add(receipt(20, 1))
	days.Add(receipt(5, 3))
	days.Add(receipt(7, 5))
	present := func(closed int64, b, a ledger.Version, alerted bool) fold.Published {
		return fold.Published{Close: closed, Balance: b, Alert: a, Present: true, Alerted: alerted}
	}
	days.Publish(origin, present(10, 4, 0, false))
	days.Publish(origin+1, present(99, 1, 2, false))
	days.Publish(origin+2, present(50, 3, 1, true))
	days.Publish(origin+3, fold.Published{Balance: 2, Alert: 7})
	days.Publish(origin+4, fold.Published{Balance: 9})
	before := []ledger.Change{gone(ledger.Balance, 0, 1)}
	r, err := Reconcile(before, days, manifest.Terms{Threshold: &threshold, OpeningBalance: 80}, fold.Touched{})
	if err != nil {
		t.Fatal(err)
	}
	want := Result{Refolded: 4, Started: origin, Changes: []ledger.Change{
		before[0],
		balance(0, 5, 90),
		balance(1, 2, 110),
		gone(ledger.Balance, 2, 4),
		gone(ledger.Alert, 2, 2),
		balance(3, 3, 115),
		balance(5, 1, 122),
	}}
	if d := cmp.Diff(want, r); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if p := days.Published(origin); p.Balance != 4 {
		t.Error("Reconcile published something")
	}
	if !days.Commit(r.Changes[1:]) {
		t.Error("the changes do not continue what was published")
	}
	if r, err = Reconcile(nil, days, manifest.Terms{Threshold: &threshold, OpeningBalance: 80}, fold.Touched{}); err != nil || len(r.Changes) != 0 {
		t.Errorf("after committing: %+v %v", r, err)
	}
}

// TestAlerts: S6, at each side of the threshold.
func TestAlerts(t *testing.T) {
	t.Parallel()
	top, bottom := int64(1<<63-1), int64(-1<<63)
	for _, c := range []struct {
		threshold *int64
		opening   int64
		issue     int64
		want      bool
	}{
		{ptr(60), 60, 1, true}, {ptr(60), 61, 1, false}, {ptr(60), 59, 1, false}, {ptr(60), 60, 100, true}, {nil, 60, 100, false},
		{ptr(0), 0, 1, true}, {ptr(-5), -5, 1, true}, {ptr(-5), 0, 5, false}, {&top, top, 1, true}, {&bottom, bottom + 1, 1, false},
	} {
		days := fold.New(origin)
		p := receipt(c.issue, 0)
		p.Kind = ledger.Issue
		r, err := Reconcile(nil, days, manifest.Terms{Threshold: c.threshold, OpeningBalance: c.opening}, days.Move(ledger.Payload{}, p))
		want := []ledger.Change{balance(0, 1, c.opening-c.issue)}
		if c.want {
			want = append(want, alert(0, 1, c.opening, c.opening-c.issue))
		}
		if d := cmp.Diff(want, r.Changes); d != "" || err != nil {
			t.Errorf("%+v: %v (-want +got):\n%s", c, err, d)
		}
	}
}

func ptr(n int64) *int64 { return &n }

// TestUnrepresentable: S7, the earliest day is named and nothing is appended.
func TestUnrepresentable(t *testing.T) {
	t.Parallel()
	days := fold.New(origin)
	for at := range 3 {
		days.Add(receipt(1<<62, at))
	}
	r, err := Reconcile([]ledger.Change{{Version: 9}}, days, manifest.Terms{OpeningBalance: 5}, fold.Touched{})
	if err != nil || r.Unrepresentable != origin+1 || len(r.Changes) != 1 || r.Refolded != 2 {
		t.Errorf("%+v %v", r, err)
	}
}

// TestExhaustedVersions is SC43 for the versions of outputs.
func TestExhaustedVersions(t *testing.T) {
	t.Parallel()
	threshold := int64(60)
	for name, p := range map[string]fold.Published{
		"balance":            {Balance: ledger.MaxCounter},
		"balance, withdrawn": {Close: 1, Balance: ledger.MaxCounter, Present: true},
		"alert":              {Alert: ledger.MaxCounter},
		"alert, withdrawn":   {Close: 200, Balance: 1, Alert: ledger.MaxCounter, Present: true, Alerted: true},
	} {
		days := fold.New(origin)
		days.Publish(origin, p)
		if p.Present && !p.Alerted {
			days.Publish(origin+1, fold.Published{})
		} else {
			issue := receipt(50, 0)
			issue.Kind = ledger.Issue
			if p.Alerted {
				issue.Quantity = 1
			}
			days.Add(issue)
		}
		opening := int64(100)
		if p.Alerted {
			opening = 201
		}
		if r, err := Reconcile(nil, days, manifest.Terms{Threshold: &threshold, OpeningBalance: opening}, fold.Touched{}); !errors.Is(err, ErrExhausted) || len(r.Changes) != 0 {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
	blocked := &ledger.Status{Blocked: true}
	if got, err := Status(nil, &ledger.Status{}, ledger.MaxCounter, blocked); !errors.Is(err, ErrExhausted) || got != nil {
		t.Errorf("status: %v %v", got, err)
	}
	if got, err := Status(nil, blocked, ledger.MaxCounter, blocked); err != nil || got != nil {
		t.Errorf("the same status: %v %v", got, err)
	}
}

// TestStatus: S7, the first is emitted, the same is not, other reasons are.
func TestStatus(t *testing.T) {
	t.Parallel()
	a := &ledger.Status{Blocked: true, Reasons: []ledger.Reason{{Code: ledger.Ambiguous, TxnID: "A", Revision: 1}}}
	b := &ledger.Status{Blocked: true, Reasons: []ledger.Reason{{Code: ledger.Ambiguous, TxnID: "A", Revision: 2}}}
	for _, c := range []struct {
		old     *ledger.Status
		version ledger.Version
		now     *ledger.Status
		want    ledger.Version
	}{{nil, 0, &ledger.Status{}, 1}, {nil, 0, a, 1}, {a, 4, a, 0}, {a, 4, b, 5}, {b, 5, &ledger.Status{}, 6}} {
		got, err := Status(nil, c.old, c.version, c.now)
		if err != nil || (c.want == 0) != (len(got) == 0) || c.want > 0 && (got[0].Version != c.want || got[0].Status != c.now || !got[0].Present) {
			t.Errorf("%+v: %+v %v", c, got, err)
		}
	}
}
