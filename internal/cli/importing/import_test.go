package importing_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/absent"
	"amends/internal/broker"
	"amends/internal/kafkatest"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
	"amends/internal/store/postgres"
)

// desk is a folder with a manifest; services are there where a test asks for them.
type desk struct {
	*programtest.Shell
	t *testing.T
}

const plainConfig = `{"schema_version":1,"namespace":"demo","source_incarnation":"kafka:00112233445566778899aabbccddeeff","ledger_origin":"2026-01-01",
	"partitions":2,"quantity_scale":2,"stock_keys":[],"open_keys":{"opening_balance":0,"threshold":null}}`

// newDesk has a manifest and no service.
func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{Shell: programtest.New(t), t: t}
	d.Write("pipeline.json", `{"source_topic":"stock","config":`+plainConfig+`}`)
	d.Write("map.yaml", mapping)
	return d
}

// newPipeline has a database, a broker and a bound namespace.
func newPipeline(t *testing.T) *desk {
	t.Helper()
	return newPipelineOf(t, plainConfig)
}

func newPipelineOf(t *testing.T, configured string) *desk {
	t.Helper()
	d := newDesk(t)
	d.Env["AMENDS_DATABASE_URL"], d.Env["AMENDS_BROKERS"] = pgtest.New(t), strings.Join(kafkatest.Embedded(t), ",")
	config := regexp.MustCompile(`"source_incarnation":"[^"]*",`).ReplaceAllString(configured, "")
	d.Write("source.json", d.want(0, "", "source create -namespace demo -topic stock -config "+d.Write("config.json", config)).Stdout)
	d.Write("pipeline.json", d.want(0, "", "output create -manifest @source.json -topic stock-out").Stdout)
	return d
}

// want runs a command line in this process and checks its code and that stderr names the cause.
func (d *desk) want(code int, cause, line string) programtest.Answer {
	d.t.Helper()
	a := d.Call(d.t.Context(), "amends "+line)
	if a.Code != code || !strings.Contains(a.Stderr, cause) {
		d.t.Errorf("amends %s: code %d, want %d with %q\n%s%s", line, a.Code, code, cause, a.Stdout, a.Stderr)
	}
	return a
}

const (
	mapping = `version: 1
item: "{sku}"
location: "{site}"
txn_id: "{id}"
revision: 1
day: "{day}"
quantity: "{n}"
kind: {positive: receipt, negative: issue}
`
	rows       = "sku,site,id,day,n\nbolt,a,1,2026-01-02,10.5\nbolt,a,2,2026-01-03,-0.25\nnut,a,3,2026-01-03,7\n"
	importFile = "import -manifest @pipeline.json -mapping @map.yaml -file @stock.csv"
)

// report reads a JSON answer, which must be as documented.
func (d *desk) report(a programtest.Answer) map[string]any {
	d.t.Helper()
	if n := programtest.Conforms(d.t, "import", a.Stdout); n != 1 {
		d.t.Fatalf("%d JSON values, want 1: %s", n, a.Stdout)
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(a.Stdout), &out); err != nil {
		d.t.Fatal(err)
	}
	return out
}

func TestDryRunNeedsNoService(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.Write("stock.csv", rows)
	a := d.want(0, "", importFile)
	want := `READY: 3 records from 3 rows; nothing was published, -execute publishes them to stock

  rows       3
  records    3
    receipt       2
    issue         1
  stock keys 2
  days       2026-01-02 to 2026-01-03

the first 3 records:
`
	if !strings.HasPrefix(a.Stdout, want) || !strings.Contains(a.Stdout, `line 3 partition `) || !strings.Contains(a.Stdout, `"kind":"issue","quantity":25}`) {
		t.Errorf("%s", a.Stdout)
	}
	r := d.report(d.want(0, "", importFile+" -o json"))
	if r["result"] != "READY" || r["records"] != 3.0 || r["executed"] != false || r["published"] != 0.0 {
		t.Errorf("%v", r)
	}
	if _, err := os.Stat(d.Path("stock.csv.progress")); err == nil {
		t.Error("a dry run left a progress file")
	}
}

func TestProblemsAreListedByLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.Write("stock.csv", rows+strings.Repeat("nut,a,9,2025-01-03,7\n", 30)+"nut,a,x\n")
	a := d.want(2, "nothing was published; bad lines: 31", importFile)
	if a.First() != "REFUSED: 31 problems in 34 rows; nothing was published" || strings.Count(a.Stdout, ": OUT_OF_HORIZON: day 2025-01-03") != 20 ||
		!strings.Contains(a.Stdout, "31 problems (OUT_OF_HORIZON 30, ROW 1):\n  line 5: OUT_OF_HORIZON") || !strings.Contains(a.Stdout, "and 11 more; -problems 31 shows them") {
		t.Errorf("%s", a.Stdout)
	}
	r := d.report(d.want(2, "", importFile+" -problems 31 -o json"))
	shown := r["problems"].(map[string]any)["shown"].([]any)
	if diff := cmp.Diff(map[string]any{"line": 35.0, "column": nil, "code": nil, "reason": "the row has 3 fields, the file has 5 columns"}, shown[30]); len(shown) != 31 || diff != "" {
		t.Errorf("%d shown, %s", len(shown), diff)
	}
	if d.report(d.want(2, "", importFile+" -o json"))["result"] != "REFUSED" {
		t.Error("not refused")
	}
}

// Files as programs really write them.
func TestFilesOfOtherPrograms(t *testing.T) {
	t.Parallel()
	crlf := strings.ReplaceAll(rows, "\n", "\r\n")
	for name, c := range map[string]struct {
		file, mapping, first, cause string
		code                        int
	}{
		"a byte order mark and Windows line ends": {file: "\ufeff" + crlf, first: "READY: 3 records from 3 rows"},
		"windows-1252":          {file: strings.ReplaceAll(rows, "bolt", "Sch\xe4kel"), mapping: "encoding: windows-1252\n", first: "READY: 3 records"},
		"mixed encodings":       {file: rows + "Schäkel,a,4,2026-01-03,7\nSch\xe4kel,a,5,2026-01-03,7\n", first: "REFUSED: 1 problem in 5 rows", code: 2, cause: `line 6: column "sku" holds byte 0xE4 after "Sch"`},
		"UTF-16":                {file: "\xff\xfes\x00k\x00", code: 2, cause: "UTF-16"},
		"wrong columns":         {file: strings.Replace(rows, "site", "Site", 1), code: 2, cause: `line 3: location: the file has no column "site"; its columns: "sku", "Site", "id", "day", "n"`},
		"wrong dates":           {file: strings.ReplaceAll(rows, "2026-01-03", "3/1/26"), first: "REFUSED: 2 problems in 3 rows", code: 2, cause: `line 3: day "3/1/26" is no date as YYYY-MM-DD`},
		"an unknown name":       {file: rows, mapping: "colour: red\n", code: 2, cause: `map.yaml: line 9: unknown name "colour"`},
		"no rows":               {file: "sku,site,id,day,n\n", first: "READY: 0 records from 0 rows"},
		"nothing":               {file: "", code: 2, cause: "the file has no rows"},
		"txn_id is not unique":  {file: strings.ReplaceAll(rows, "bolt,a,2", "bolt,a,1"), first: "REFUSED: 1 problem", code: 2, cause: "has revision 1 already, with another content"},
		"an escape sequence":    {file: rows + "\x1b[2Jbolt,a,4,2026-01-03,x\n", first: "REFUSED: 1 problem", code: 2, cause: "line 5: quantity"},
		"a control character":   {file: rows + "\u009b2J,a,4,2026-01-03,1\n", first: "READY: 4 records"},
		"quotes over lines":     {file: rows + "\"bolt\nM\"\"8\",a,4,2026-01-03,1\nbolt,a,x,2026-01-03,y\n", first: "REFUSED: 1 problem in 5 rows", code: 2, cause: "line 7: quantity"},
		"a NUL":                 {file: rows + "bo\x00lt,a,4,2026-01-03,1\n", first: "READY: 4 records"},
		"a column twice":        {file: strings.Replace(rows, "site", "sku", 1), code: 2, cause: `line 2: item: the file has two columns "sku"`},
		"a line of 10 MB":       {file: rows + strings.Repeat("x", 10<<20) + "\n", first: "REFUSED: 1 problem in 4 rows", code: 2, cause: "line 5: a row of more than 1 MiB"},
		"carriage returns":      {file: strings.ReplaceAll(rows, "\n", "\r"), code: 2, cause: "are the line ends of the file carriage returns alone?"},
		"said twice in one way": {file: rows + "nut,a,3,2026-01-03,7\n", first: "READY: 4 records"},
	} {
		d := newDesk(t)
		d.Write("stock.csv", c.file)
		d.Write("map.yaml", mapping+c.mapping)
		a := d.want(c.code, c.cause, importFile)
		if !strings.HasPrefix(a.First(), c.first) || strings.ContainsAny(a.Stdout, "\x1b\u009b") {
			t.Errorf("%s: %s", name, a.Stdout)
		}
		if a.Stdout != "" {
			d.report(d.want(c.code, c.cause, importFile+" -o json"))
		}
	}
}

func TestWrongInvocations(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.Write("stock.csv", rows)
	for line, cause := range map[string]string{
		"import -manifest @pipeline.json -mapping @map.yaml":                       "needs -file and -mapping",
		"import -manifest @pipeline.json -file @stock.csv":                         "needs -file and -mapping",
		importFile + " -problems 0":                                                "-problems 0: 1 to 100000",
		importFile + " -restart":                                                   "belong to -execute",
		importFile + " -progress-file x":                                           "belong to -execute",
		importFile + " -o yaml":                                                    "-o yaml",
		importFile + " more":                                                       "takes no argument",
		importFile + " -execute":                                                   "AMENDS_DATABASE_URL is not set",
		"import -manifest @none.json -mapping @map.yaml -file @stock.csv":          "read manifest",
		"import -mapping @map.yaml -file @stock.csv":                               "no manifest",
		"import -manifest @pipeline.json -mapping @none.yaml -file @stock.csv":     "open mapping file",
		"import -manifest @pipeline.json -mapping @map.yaml -file @none.csv":       "open file",
		"import -manifest @pipeline.json -mapping @map.yaml -file @.":              "not a regular file",
		"import -manifest @pipeline.json -mapping @pipeline.json -file @stock.csv": "pipeline.json: line 2",
	} {
		if a := d.want(2, cause, line); a.Stdout != "" {
			t.Errorf("%s: said %s", line, a.Stdout)
		}
	}
}

func (d *desk) manifest() *manifest.Manifest {
	d.t.Helper()
	m, err := manifest.Parse([]byte(d.Read("pipeline.json")))
	if err != nil {
		d.t.Fatal(err)
	}
	return m
}

// published returns what the source topic holds, partition by partition.
func (d *desk) published() []string {
	d.t.Helper()
	m := d.manifest()
	options := broker.Options{Brokers: strings.Split(d.Env["AMENDS_BROKERS"], ",")}
	admin, err := broker.Open(options)
	if err != nil {
		d.t.Fatal(err)
	}
	defer admin.Close()
	r, err := broker.NewReader(options, m.SourceTopic, m.Config.SourceIncarnation)
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Close()
	ends, err := admin.Stable(d.t.Context(), m.SourceTopic)
	if err != nil {
		d.t.Fatal(err)
	}
	var all []string
	for p, end := range ends {
		if _, err := r.ReadTo(d.t.Context(), ledger.Partition(p), 0, ledger.Frontier(end), func(r ledger.SourceRecord) error {
			all = append(all, string(r.Value))
			return nil
		}); err != nil {
			d.t.Fatal(err)
		}
	}
	return all
}

// An import is published once, verified like any other load, and done when it is run again; what changed since is looked at.
func TestImportIsPublishedOnce(t *testing.T) {
	t.Parallel()
	d := newPipeline(t)
	d.Write("stock.csv", rows)
	if a := d.want(0, "", importFile+" -execute"); a.First() != "PUBLISHED: 3 records to stock" {
		t.Errorf("%s", a.Stdout)
	}
	all := strings.Join(d.published(), "\n")
	for _, want := range []string{`"txn_id":"1","revision":1,"state":"active","item":"bolt","location":"a","day":"2026-01-02","kind":"receipt","quantity":1050}`,
		`"txn_id":"2","revision":1,"state":"active","item":"bolt","location":"a","day":"2026-01-03","kind":"issue","quantity":25}`,
		`"txn_id":"3","revision":1,"state":"active","item":"nut","location":"a","day":"2026-01-03","kind":"receipt","quantity":700}`} {
		if strings.Count(all, want) != 1 {
			t.Errorf("%s is not published once in\n%s", want, all)
		}
	}
	r := d.report(d.want(0, "", importFile+" -execute -o json"))
	if r["result"] != "COMPLETE" || r["published"] != 0.0 || len(d.published()) != 3 {
		t.Errorf("%v", r)
	}
	d.Write("stock.csv", rows+"nut,a,4,2026-01-04,1\n") // another file after a finished import begins at its first line
	r = d.report(d.want(0, "", importFile+" -execute -o json"))
	if r["result"] != "PUBLISHED" || r["published"] != 4.0 || r["acknowledged_line"] != 5.0 || len(d.published()) != 7 {
		t.Errorf("%v", r)
	}
	if r = d.report(d.want(0, "", importFile+" -execute -restart -o json")); r["published"] != 4.0 || len(d.published()) != 11 {
		t.Errorf("%v", r)
	}
	d.Write("stock.csv", rows+"nut,a,x\n")
	d.want(2, "bad lines: 1", importFile+" -execute")
	if len(d.published()) != 11 {
		t.Error("something of a refused file was published")
	}
}

// An import that stopped goes on after its last acknowledged line, and refuses a file that changed in between.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	d := newPipeline(t)
	d.Write("stock.csv", rows)
	d.guarded(func() {
		if r := d.report(d.want(1, "guard", importFile+" -execute -progress-file @p -o json")); r["result"] != "STOPPED" || r["published"] != 0.0 {
			t.Errorf("%v", r)
		}
	})
	raw, err := os.ReadFile(d.Path("p"))
	if err != nil {
		t.Fatal(err)
	}
	d.Write("p", strings.Replace(string(raw), `"acknowledged_line":0`, `"acknowledged_line":3`, 1)) // as after two records
	if a := d.want(0, "", importFile+" -execute -progress-file @p"); a.First() != "PUBLISHED: the last 1 of 3 records to stock" {
		t.Errorf("%s", a.Stdout)
	}
	if got := d.published(); len(got) != 1 || !strings.Contains(got[0], `"txn_id":"3"`) {
		t.Errorf("published %q", got)
	}
	d.Write("p", string(raw))
	d.Write("stock.csv", rows+"nut,a,4,2026-01-04,1\n")
	// Running that again would be refused again: it says nothing of going on.
	if a := d.want(2, "unfinished import of other content (the file has changed)", importFile+" -execute -progress-file @p"); a.First() != "STOPPED: none of 4 records was published" {
		t.Errorf("%s", a.Stdout)
	}
	d.want(2, "is no progress file", importFile+" -execute -progress-file @map.yaml")
	d.want(2, "write progress file", importFile+" -execute -progress-file /nonexistent/p")
	if len(d.published()) != 1 {
		t.Error("a refused import published something")
	}
}

// guarded holds the loader's guard of the source while fn runs.
func (d *desk) guarded(fn func()) {
	d.t.Helper()
	if err := d.tryGuard(fn); err != nil {
		d.t.Fatal(err)
	}
}

// tryGuard is guarded where the guard is free, and otherwise says who has it.
func (d *desk) tryGuard(fn func()) error {
	d.t.Helper()
	m := d.manifest()
	db, err := postgres.Open(d.t.Context(), postgres.Options{URL: d.Env["AMENDS_DATABASE_URL"]})
	if err != nil {
		d.t.Fatal(err)
	}
	defer db.Close()
	g, err := db.GuardSource(d.t.Context(), m.Config.SourceIncarnation)
	if err != nil {
		return err
	}
	fn()
	return g.Release(d.t.Context())
}

// The two public data sets are imported, go through the whole pipeline and are what the oracle says.
func TestPublicDataSets(t *testing.T) {
	t.Parallel()
	northwind := absent.Data(t, "northwind/northwind-data.sql")
	retail := absent.Data(t, "online-retail-top60/online-retail-top60-cancelled-stockcodes.csv")
	d := newPipelineOf(t, strings.NewReplacer("2026-01-01", "2006-01-01", `"quantity_scale":2`, `"quantity_scale":0`).Replace(plainConfig))
	d.Roles("amends run -manifest @pipeline.json")
	for _, c := range []struct{ file, mapping, want string }{
		{northwind, "northwind.yaml", "PUBLISHED: 141 records to stock"}, // 92 rows that are not on hold, 49 of them modified later
		{retail, "online-retail.yaml", "PUBLISHED: 45085 records to stock"},
	} {
		a := d.want(0, "", "import -manifest @pipeline.json -execute -progress-file @"+c.mapping+".progress -file "+c.file+" -mapping "+filepath.Join("..", "..", "..", "fixtures", "mappings", c.mapping))
		if a.First() != c.want {
			t.Errorf("%s", a.Stdout)
		}
	}
	if a := d.want(0, "", "verify -manifest @pipeline.json -timeout 5m"); !strings.HasPrefix(a.First(), "PASS  45226 source records, ") {
		t.Errorf("%s", a.Stdout)
	}
}
