package tidy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// rule says what the code of a package may import beside the standard library: packages of this module (without
// internal/ where they are there), and modules by the beginning of their path. Tests may import what they need.
type rule struct {
	internal string
	external string
}

const (
	franz  = "github.com/twmb/franz-go"
	pgx    = "github.com/jackc"
	tokens = "github.com/go-json-experiment/json"
)

// table has a row for every package; reading it downwards is the order of dependencies (design section 2).
var table = map[string]rule{
	// vocabulary
	"invariant": {},
	"ledger":    {},
	"manifest":  {internal: "ledger", external: tokens},
	"wire":      {internal: "invariant ledger manifest"},
	"journal":   {internal: "invariant ledger"},
	"pause":     {},
	"phrase":    {},

	// decisions
	"authority": {internal: "invariant ledger"},
	"fold":      {internal: "invariant ledger"},
	"diff":      {internal: "invariant ledger manifest fold"},
	"engine":    {internal: "invariant ledger manifest wire journal authority fold diff"},
	"view":      {internal: "invariant ledger manifest wire"},
	"workload":  {internal: "invariant ledger manifest wire"},
	"oracle":    {internal: "ledger"},

	// adapters
	"store":                  {internal: "invariant ledger manifest"},
	"store/memory":           {internal: "invariant ledger manifest journal store"},
	"store/postgres/session": {internal: "invariant store", external: pgx},
	"store/postgres/schema":  {internal: "invariant store store/postgres/session", external: pgx},
	"store/postgres/row":     {internal: "ledger manifest journal store store/postgres/session"},
	"store/postgres/trail":   {internal: "ledger store"},
	"store/postgres/reader":  {internal: "ledger store store/postgres/row store/postgres/session", external: pgx},
	"store/postgres/upkeep":  {internal: "ledger store store/postgres/session"},
	"store/postgres/grants":  {},
	"store/postgres/console": {internal: "store/postgres/session", external: pgx},
	"store/postgres/checkup": {internal: "store store/postgres/session", external: pgx},
	"store/postgres":         {internal: "invariant ledger manifest journal store store/postgres/reader store/postgres/upkeep store/postgres/row store/postgres/session store/postgres/schema store/postgres/trail", external: pgx},
	"broker":                 {internal: "ledger pause", external: franz},

	// services
	"lease":         {internal: "invariant ledger store pause"},
	"worker":        {internal: "invariant ledger manifest wire engine store broker pause"},
	"delivery":      {internal: "invariant ledger manifest wire view store broker lease pause"},
	"provision":     {internal: "ledger manifest wire store broker pause phrase", external: tokens + " golang.org/x/sync"},
	"verify/stored": {internal: "ledger manifest wire oracle store"},
	"verify":        {internal: "ledger manifest wire oracle store broker verify/stored pause"},
	"health":        {internal: "ledger manifest store store/postgres/reader broker store/postgres/checkup store/postgres/grants phrase"},
	"explain":       {internal: "ledger manifest store store/postgres/reader"},
	"diagnose":      {internal: "ledger wire store/postgres/reader health"},
	"inspect":       {internal: "ledger manifest wire store health diagnose phrase"},
	"report":        {internal: "ledger wire store verify inspect phrase"},
	"audit":         {internal: "ledger manifest oracle report store store/postgres store/postgres/reader verify"},
	"usage":         {internal: "phrase", external: "github.com/spf13 github.com/goccy/go-yaml"},
	"progress":      {external: "golang.org/x/term"},
	"tabular":       {internal: "phrase"},
	"mapping":       {internal: "ledger tabular", external: "github.com/goccy/go-yaml"},
	"intake":        {internal: "ledger manifest wire provision tabular mapping"},

	// edges
	"@fixtures":        {},
	"roles":            {internal: "ledger manifest store broker worker delivery lease"},
	"recovery":         {internal: "ledger manifest wire store store/postgres store/postgres/reader broker lease verify verify/stored report provision roles pause"},
	"telemetry":        {internal: "health", external: "github.com/prometheus/client_golang"},
	"web":              {},
	"embedded/process": {external: "golang.org/x"},
	"embedded/apache":  {internal: "embedded/process", external: franz},
	"embedded":         {internal: "embedded/process embedded/apache", external: franz + " " + pgx + " golang.org/x"},
	"showcase":         {internal: "ledger manifest wire workload store store/postgres broker worker delivery lease verify inspect provision roles embedded @fixtures pause phrase"},
	"cli/target":       {internal: "invariant manifest store store/postgres broker usage embedded pause", external: "github.com/spf13"},
	"cli/watch":        {internal: "store broker usage cli/target", external: "github.com/spf13 golang.org/x"},
	"cli/manual":       {internal: "invariant usage embedded cli/target", external: "github.com/spf13"},
	"cli/query":        {internal: "cli/target cli/watch explain inspect ledger manifest provision report store/postgres/reader usage wire pause phrase", external: "github.com/spf13"},
	"cli/proof":        {internal: "audit broker cli/target manifest phrase provision report store usage verify", external: "github.com/spf13"},
	"showcase/barrier": {external: pgx},
	"showcase/account": {internal: "report"},
	"showcase/crash":   {internal: "ledger manifest wire workload store store/postgres store/postgres/reader broker provision verify report embedded/process showcase/account showcase/barrier @fixtures pause"},
	"cli/show":         {internal: "cli/target manifest store store/postgres broker verify usage progress embedded showcase/account showcase/crash", external: "github.com/spf13"},
	"cli/restore":      {internal: "ledger manifest wire store verify report inspect provision recovery progress usage cli/target cli/watch phrase", external: "github.com/spf13"},
	"cli/console":      {internal: "report store/postgres/console usage cli/target cli/watch phrase", external: "github.com/spf13 golang.org/x"},
	"cli/migrate":      {internal: "store store/postgres store/postgres/grants usage cli/target cli/watch phrase", external: "github.com/spf13"},
	"cli/operate":      {internal: "cli/target cli/watch ledger manifest store store/postgres store/postgres/reader broker usage health inspect provision diagnose telemetry web store/postgres/checkup phrase", external: "github.com/spf13"},
	"cli/importing":    {internal: "broker usage progress provision intake cli/target phrase", external: "github.com/spf13"},
	"cli":              {internal: "cli/migrate cli/console cli/importing cli/restore cli/manual cli/show cli/proof cli/operate cli/query cli/target cli/watch ledger manifest wire journal workload store store/postgres broker worker delivery lease verify report usage phrase progress inspect provision recovery roles embedded embedded/apache showcase bench sim sim/choice sim/campaign @fixtures", external: "github.com/spf13 golang.org/x github.com/goccy/go-yaml"},
	"@cmd/amends":      {internal: "cli"},
	"@cmd/amendsctl":   {internal: "cli"},

	// tools of the checkout, in no product binary
	"testcount":            {},
	"mutate":               {},
	"devstack":             {internal: "embedded embedded/process embedded/apache"},
	"@cmd/amends-devstack": {internal: "devstack"},

	// simulation, reached by the sim command alone
	"sim/choice":   {internal: "invariant"},
	"sim/fault":    {},
	"sim/topic":    {internal: "invariant ledger broker"},
	"sim/serial":   {internal: "ledger manifest wire engine workload store sim/topic"},
	"sim":          {internal: "ledger manifest store store/memory broker worker delivery lease verify sim/choice sim/fault sim/topic sim/serial"},
	"sim/campaign": {internal: "sim sim/choice sim/fault"},

	// measurements
	"bench":          {internal: "ledger manifest wire journal engine workload store store/postgres broker worker delivery lease verify provision roles embedded @bench/serial @bench/trigger", external: franz + " " + pgx + " golang.org/x/sync"},
	"@bench/serial":  {internal: "ledger manifest wire broker", external: pgx},
	"@bench/trigger": {internal: "ledger manifest wire broker", external: pgx},

	// helpers of tests, in no binary
	"absent":                  {},
	"pace":                    {},
	"acceptance":              {},
	"scratch":                 {},
	"tidy":                    {},
	"faultwire":               {},
	"failover":                {},
	"access":                  {},
	"bubble":                  {},
	"doctest":                 {},
	"operator":                {},
	"drill":                   {},
	"programtest":             {internal: "cli scratch", external: "github.com/santhosh-tekuri/jsonschema"},
	"pgtest":                  {internal: "absent scratch pause embedded embedded/process", external: pgx},
	"kafkatest":               {internal: "absent scratch pause embedded embedded/process embedded/apache", external: franz},
	"store/storetest/surface": {internal: "ledger manifest store"},
	"store/storetest":         {internal: "ledger manifest wire journal engine store store/storetest/surface", external: "github.com/google/go-cmp"},
	"pipelinetest":            {internal: "ledger manifest wire engine store store/memory store/postgres broker worker delivery lease verify provision roles embedded workload kafkatest pgtest absent scratch"},
}

// testOnly are the packages that no binary may hold.
const testOnly = "faultwire failover access bubble absent pace scratch tidy doctest operator programtest pgtest kafkatest store/storetest store/storetest/surface pipelinetest"

// tools are the binaries that make uses: no part of the product.
const tools = "testcount mutate @cmd/amends-devstack"

// dataPlane never reaches controlPlane (design section 2).
const (
	dataPlane    = "broker store store/memory store/postgres store/postgres/row store/postgres/session store/postgres/schema store/postgres/trail store/postgres/reader store/postgres/upkeep engine worker delivery lease store/postgres/checkup"
	controlPlane = "verify verify/stored audit report explain inspect provision oracle roles recovery cli cli/restore cli/proof cli/query cli/target showcase embedded bench sim sim/campaign health diagnose telemetry web cli/operate"
)

// folderOf turns a name of the table into a folder: @ stands for the module root.
func folderOf(name string) string {
	if rest, ok := strings.CutPrefix(name, "@"); ok {
		return rest
	}
	return "internal/" + name
}

func foldersOf(names string) []string {
	var all []string
	for _, n := range strings.Fields(names) {
		all = append(all, folderOf(n))
	}
	return all
}

func TestImportTable(t *testing.T) {
	report(t, importProblems(readTree(t), table))
}

// importProblems compares what the code imports with the rows.
func importProblems(tr *tree, rows map[string]rule) []string {
	var problems []string
	rules := map[string]rule{}
	for name, r := range rows {
		rules[folderOf(name)] = r
	}
	for _, f := range tr.sorted() {
		r, listed := rules[f.name]
		if !listed {
			problems = append(problems, f.name+": is not in the import table; add its row")
			continue
		}
		for _, s := range f.code() {
			for _, p := range s.imports() {
				to := internal(p)
				switch {
				case to != "" && !slices.Contains(foldersOf(r.internal), to):
					problems = append(problems, fmt.Sprintf("%s: imports %s, which the table does not allow %s", s.path, p, f.name))
				case external(p) && !slices.ContainsFunc(strings.Fields(r.external), func(m string) bool { return p == m || strings.HasPrefix(p, m+"/") }):
					problems = append(problems, fmt.Sprintf("%s: imports %s, which the table does not allow %s", s.path, p, f.name))
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if tr.folders[name] == nil {
			problems = append(problems, name+": has a row in the import table and no files; remove the row")
		}
	}
	return problems
}

// The oracle is independent (S10): all it reaches of this module is the vocabulary's types.
func TestOracleReachesLedgerOnly(t *testing.T) {
	ways := readTree(t).closure("internal/oracle")
	if got := slices.Collect(maps.Keys(ways)); !slices.Equal(got, []string{"internal/ledger"}) {
		t.Errorf("internal/oracle reaches %v, want internal/ledger alone", ways)
	}
}

func TestDataPlaneDoesNotReachControlPlane(t *testing.T) {
	tr := readTree(t)
	var problems []string
	for _, from := range foldersOf(dataPlane) {
		ways := tr.closure(from)
		for _, to := range foldersOf(controlPlane) {
			if way := ways[to]; way != "" {
				problems = append(problems, "the data plane reaches the control plane: "+way)
			}
		}
	}
	report(t, problems)
}

// Faults are linked into no role: the simulation is imported by the sim command's file alone.
func TestSimulationIsReachedBySimAlone(t *testing.T) {
	for _, f := range readTree(t).sorted() {
		for _, s := range f.code() {
			for _, p := range s.imports() {
				to := internal(p)
				if within := to == "internal/sim" || strings.HasPrefix(to, "internal/sim/"); within && !strings.HasPrefix(f.name, "internal/sim") && s.path != "internal/cli/sim.go" {
					t.Errorf("%s: imports %s, which only the sim command may", s.path, to)
				}
			}
		}
	}
}

// What holds a commit back stands in front of a showcase's own processes: no role and no other command reaches it.
func TestBarrierIsReachedByShowcaseAlone(t *testing.T) {
	tr := readTree(t)
	const barrier = "internal/showcase/barrier"
	found := false
	for _, f := range tr.sorted() {
		for _, s := range f.code() {
			for _, p := range s.imports() {
				switch to := internal(p); {
				case to == barrier && f.name == "internal/showcase/crash":
					found = true
				case to == barrier:
					t.Errorf("%s: imports %s, which only internal/showcase/crash may", s.path, to)
				case to == "internal/showcase/crash" && f.name != "internal/cli/show":
					t.Errorf("%s: imports %s, which only internal/cli/show may", s.path, to)
				case to == "internal/cli/show" && s.path != "internal/cli/showcase.go" && s.path != "internal/cli/demo.go":
					t.Errorf("%s: imports %s, which only showcase and demo may", s.path, to)
				}
			}
		}
	}
	if !found {
		t.Error("nothing imports " + barrier)
	}
	for _, role := range foldersOf("roles worker delivery lease store/postgres") {
		if way := tr.closure(role)[barrier]; way != "" {
			t.Errorf("a role reaches what holds commits back: %s", way)
		}
	}
}

// No binary holds test helpers, and the peers that measurements compare with are the bench command's.
func TestBinariesHoldNoTestHelpers(t *testing.T) {
	tr := readTree(t)
	var problems []string
	for _, f := range tr.sorted() {
		for _, s := range f.code() {
			for _, p := range s.imports() {
				if to := internal(p); strings.HasPrefix(to, "bench/") && f.name != folderOf("bench") {
					problems = append(problems, s.path+": imports "+to+", which only internal/bench may")
				}
			}
		}
		if f.files[0].ast.Name.Name != "main" {
			continue
		}
		ways := tr.closure(f.name)
		for _, helper := range foldersOf(testOnly) {
			if way := ways[helper]; way != "" {
				problems = append(problems, "a binary holds a test helper: "+way)
			}
		}
		if len(ways) < 10 && !slices.Contains(foldersOf(tools), f.name) {
			problems = append(problems, fmt.Sprintf("%s reaches %d packages: this is not the product", f.name, len(ways)))
		}
	}
	report(t, problems)
}
