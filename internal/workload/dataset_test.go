package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"amends/internal/absent"
	"amends/internal/ledger"
	"amends/internal/oracle"
	"amends/internal/wire"

	"github.com/google/go-cmp/cmp"
)

const retailFile = "online-retail-top60/online-retail-top60-cancelled-stockcodes.csv"

// believe adds a data set to an oracle, as a loader would publish it; every record must be valid.
func believe(t *testing.T, d *Dataset) *oracle.Oracle {
	t.Helper()
	cfg, err := d.Setting.Config("retail", "kafka:"+strings.Repeat("a", 32))
	if err != nil {
		t.Fatal(err)
	}
	o, log := judge(d.Setting), NewLog(cfg)
	for _, a := range d.Assertions {
		rec := log.Record(a)
		if v := o.Add(rec.Partition, rec.Offset, rec.Key, rec.Value); v.Rejection != 0 || v.Assertion != a {
			t.Fatalf("%s: %q", v.Rejection, rec.Value)
		}
	}
	return o
}

func open(t *testing.T, rel string) *os.File {
	t.Helper()
	f, err := os.Open(absent.Data(t, rel))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// What holds whichever sale a cancellation finds: no unit is lost. The last close of a key is its opening balance less
// all sold and written off, plus all cancelled; the opening balance is all sold and written off.
func TestRetailConversionEqualsSumsOfTheFile(t *testing.T) {
	t.Parallel()
	f := open(t, retailFile)
	d, err := ReadRetail(f)
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(t, open(t, retailFile))
	type sums struct{ out, back int64 }
	by := map[ledger.StockKey]*sums{}
	cancellations := 0
	for _, row := range rows[1:] {
		k := ledger.StockKey{Item: row[1], Location: row[7]}
		if by[k] == nil {
			by[k] = &sums{}
		}
		q, _ := strconv.ParseInt(row[3], 10, 64)
		if row[0][0] == 'C' {
			by[k].back -= q
			cancellations++
		} else {
			by[k].out += max(q, -q)
		}
	}
	if len(d.Assertions) != 45_085 || cancellations != 2_487 || len(d.Setting.Keys) != len(by) || d.Setting.Origin.String() != "2010-12-01" {
		t.Fatalf("%d assertions, %d cancellations, %d keys of %d, origin %s", len(d.Assertions), cancellations, len(d.Setting.Keys), len(by), d.Setting.Origin)
	}
	o := believe(t, d)
	for _, k := range d.Setting.Keys {
		e := o.Expected(k.Key)
		want := by[k.Key]
		if e.Status.Blocked || k.OpeningBalance != want.out || *k.Threshold != want.out/10 {
			t.Errorf("%v: %+v opening %d, want %d", k.Key, e.Status, k.OpeningBalance, want.out)
		}
		if n := len(e.Balances); n > 0 && e.Balances[n-1].Close != want.back {
			t.Errorf("%v: last close %d, want %d", k.Key, e.Balances[n-1].Close, want.back)
		}
	}
}

func rowsOf(t *testing.T, f *os.File) [][]string {
	t.Helper()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Five keys of the file, each day's close computed backwards by a few lines that know nothing of revisions: the closes
// of a key's days follow from what each day's surviving sales amount to.
func TestRetailClosesOfFiveKeys(t *testing.T) {
	t.Parallel()
	d, err := ReadRetail(open(t, retailFile))
	if err != nil {
		t.Fatal(err)
	}
	o := believe(t, d)
	rows := rowsOf(t, open(t, retailFile))[1:]
	for _, k := range []ledger.StockKey{{Item: "85123A", Location: "United Kingdom"}, {Item: "22423", Location: "France"}, {Item: "22423", Location: "Germany"},
		{Item: "22726", Location: "EIRE"}, {Item: "22960", Location: "United Kingdom"}} {
		moved := map[string]int64{} // by day
		there := map[string]int{}
		var opening int64
		left := make([]int64, len(rows))
		for i, row := range rows {
			if row[1] != k.Item || row[7] != k.Location {
				continue
			}
			q, _ := strconv.ParseInt(row[3], 10, 64)
			day := row[4][:10]
			if row[0][0] != 'C' {
				q = max(q, -q)
				opening += q
				moved[day] -= q
				there[day]++
				left[i] = q
				continue
			}
			j := i - 1
			for ; j >= 0; j-- {
				if r := rows[j]; row[6] != "" && r[6] == row[6] && r[1] == row[1] && r[7] == row[7] && r[0][0] != 'C' && r[3][0] != '-' && left[j] >= -q {
					break
				}
			}
			if j < 0 {
				moved[day] -= q
				there[day]++
				continue
			}
			moved[rows[j][4][:10]] -= q
			if left[j] += q; left[j] == 0 {
				there[rows[j][4][:10]]--
			}
		}
		var got, want []string
		e := o.Expected(k)
		for _, b := range e.Balances {
			got = append(got, fmt.Sprint(b.Day, " ", b.Close))
		}
		balance := opening
		for day := d.Setting.Origin; day < d.Setting.Origin+400; day++ {
			balance += moved[day.String()]
			if there[day.String()] > 0 {
				want = append(want, fmt.Sprint(day, " ", balance))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(want) < 5 {
			t.Errorf("%v (%d days; -file +oracle):\n%s", k, len(want), diff)
		}
	}
}

func TestRetailMapping(t *testing.T) {
	t.Parallel()
	const header = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n"
	d, err := ReadRetail(strings.NewReader(header + `1,A,"x, y",10,2010-12-01 08:00:00,1,7.0,UK
1,A,,4,2010-12-01 08:00:00,1,7.0,UK
2,A,,-3,2010-12-02 08:00:00,1,,UK
C3,A,,-4,2010-12-03 08:00:00,1,7.0,UK
C4,A,,-4,2010-12-04 08:00:00,1,7.0,UK
C4,A,,-5,2010-12-04 08:00:00,1,7.0,UK
C5,A,,-2,2010-12-05 08:00:00,1,8.0,UK
C6,A,,-1,2010-12-06 08:00:00,1,,UK
7,a,,29,2010-12-07 08:00:00,1,,UK
C8,A,,-2,2010-12-08 08:00:00,1,7.0,UK
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range d.Assertions {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s r%d %s %s %d", a.Key.Item, a.TxnID, a.Revision, a.Payload.Kind, a.Payload.Day, a.Payload.Quantity)))
	}
	want := []string{"A 1:1 r1 issue 2010-12-01 10", "A 1:2 r1 issue 2010-12-01 4", "A 2:1 r1 issue 2010-12-02 3", "A 1:2 r2  - 0", "A 1:1 r2 issue 2010-12-01 6",
		"A 1:1 r3 issue 2010-12-01 1", "A C5:1 r1 receipt 2010-12-05 2", "A C6:1 r1 receipt 2010-12-06 1", "a 7:1 r1 issue 2010-12-07 29", "A C8:1 r1 receipt 2010-12-08 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if k := d.Setting.Keys; len(k) != 2 || k[0].OpeningBalance != 17 || *k[0].Threshold != 1 || k[1].OpeningBalance != 29 || *k[1].Threshold != 2 {
		t.Errorf("%+v", k)
	}
	for text, row := range map[string]int{
		"": 0, "a,b\n": 1, header: 1, header + "1,A,,1,2010-12-01,1,,UK\n1,,,1,2010-12-01,1,,UK\n": 3, header + "1,A,,0,2010-12-01,1,,UK\n": 2,
		header + "1,A,,1,2010-13-01,1,,UK\n": 2, header + "1,A,,1,2010-12-02,1,,UK\n2,A,,1,2010-12-01,1,,UK\n": 3, header + "1,A,,1,2010-12-02,1,,\xff\n": 2,
	} {
		var e *RowError
		if _, err := ReadRetail(strings.NewReader(text)); !errors.As(err, &e) || e.Row != row {
			t.Errorf("%q: %v, want a problem in row %d", text, err, row)
		}
	}
	if _, err := ReadRetail(strings.NewReader(header + "1,A,\n")); err == nil {
		t.Error("a short row was converted")
	}
}

func TestSyntheticRetailFollowsTheLaw(t *testing.T) {
	t.Parallel()
	d := SyntheticRetail(RetailOptions{Seed: 3})
	o := believe(t, d)
	for e := range o.All() {
		if e.Status.Blocked {
			t.Errorf("%v is blocked", e.Key)
		}
	}
	revised, receipts := 0, 0
	for _, a := range d.Assertions {
		if a.Revision > 1 {
			revised++
		}
		if a.Payload.Kind == ledger.Receipt {
			receipts++
		}
	}
	if n := len(d.Assertions) - revised - receipts; n != 20_000 || revised < 400 || revised > 900 || receipts < 150 {
		t.Errorf("%d sales, %d revisions, %d receipts", n, revised, receipts)
	}
	s := shop{r: NewRand(1)}
	lags := map[string]int{}
	for range 100_000 {
		switch l := s.lag(); {
		case l < 9:
			lags["below 9"]++
		case l >= 134:
			lags["134 and more"]++
		case l > 368:
			lags["over"]++
		}
	}
	if lags["below 9"] < 49_000 || lags["below 9"] > 51_000 || lags["134 and more"] < 4_500 || lags["134 and more"] > 5_500 || lags["over"] > 0 {
		t.Error(lags)
	}
}

func TestNorthwind(t *testing.T) {
	t.Parallel()
	d, err := ReadNorthwind(open(t, "northwind/northwind-data.sql"))
	if err != nil {
		t.Fatal(err)
	}
	second := 0
	for _, a := range d.Assertions {
		if a.Revision == 2 {
			second++
		}
	}
	o := believe(t, d)
	// Product 80: 75 received on 03-22; 30 sold on 03-22, modified to 03-24; 10 sold on 03-22; 20 on hold left out.
	var got []string
	for _, b := range o.Expected(ledger.StockKey{Item: "80", Location: NorthwindLocation}).Balances {
		got = append(got, fmt.Sprint(b.Day, " ", b.Close))
	}
	if len(got) < 2 || got[0] != "2006-03-22 65" || got[1] != "2006-03-24 35" {
		t.Errorf("closes of product 80: %v", got)
	}
	// 102 rows, ten of them on hold; of the 50 that were modified one is on hold.
	if len(d.Assertions) != 92+49 || second != 49 {
		t.Errorf("%d assertions, %d of revision 2", len(d.Assertions), second)
	}
	var e *RowError
	if _, err := ReadNorthwind(strings.NewReader(northwindTable + "(`id`) VALUES (1, 9, '2006-03-22', '2006-03-22', 80, 75, NULL);\n")); !errors.As(err, &e) || e.Row != 1 {
		t.Errorf("an unknown type: %v", err)
	}
	if _, err := ReadNorthwind(strings.NewReader("")); !errors.As(err, &e) {
		t.Errorf("no rows: %v", err)
	}
}

func TestLinesAreValuesOfS3(t *testing.T) {
	t.Parallel()
	a := SyntheticRetail(RetailOptions{Sales: 10}).Assertions[0]
	line := AppendLine(nil, a)
	got, code, problem := wire.ParseValue(line[:len(line)-1])
	if code != 0 || problem != nil || got != a || line[len(line)-1] != '\n' {
		t.Errorf("%q: %v %v", line, code, problem)
	}
}
