package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/faultwire"
	"amends/internal/kafkatest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// What a partition row says of measurements, times aside.
const measured = `SELECT commits, total_records, total_accepted, total_rejected, total_rewind_days, total_refolded_days, total_changed, total_withdrawn,
	last_records, last_accepted, last_rejected, last_rewind_days, last_refolded_days, last_changed, last_withdrawn, cardinality(samples) / 9 AS n
	FROM amends.partitions WHERE partition = 0`

// Measurements (SC42): none before the first commit; counted once under both outcomes of a lost COMMIT; unchanged by a
// rollback, a fence and an offset gap; kept over a restart and a new owner; the time of a wait for the lock is seen.
// Shows F2.
func TestSC42Measurements(t *testing.T) {
	t.Parallel()
	s := newSpace(t, "")
	direct := s.Env["AMENDS_DATABASE_URL"]
	p := faultwire.New(t, direct)
	s.Env["AMENDS_DATABASE_URL"] = p.URL()
	if got := s.one(measured); got != "0|0|0|0|0|0|0|0|NULL|NULL|NULL|NULL|NULL|NULL|NULL|0" {
		t.Errorf("before the first commit: %s", got)
	}
	role := s.Start("amends -role source -manifest pipeline.json")
	s.load(widget("T-1", 1, "receipt", 100, 1))
	s.frontier(0, 1)
	expect := func(when, want string) {
		t.Helper()
		if got := s.one(measured); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	expect("one record", "1|1|1|0|0|1|2|0|1|1|0|0|1|2|0|1")
	request := p.Arm(faultwire.CutBefore, 0, faultwire.CommitOf("advance"))
	s.load(widget("T-2", 1, "receipt", 5, 3))
	s.frontier(0, 2)
	expect("a lost COMMIT", "2|2|2|0|0|2|3|0|1|1|0|0|1|1|0|2")
	reply := p.Arm(faultwire.CutAfter, 0, faultwire.CommitOf("advance"))
	s.load(widget("T-1", 2, "receipt", 70, 1)) // rewinds two days of the calendar, refolds both closes
	s.frontier(0, 3)
	programtest.Await(t, "both losses", func() bool { return request.Done() && reply.Done() })
	s.loadRaw(raw{key: []byte(widgetKey), value: []byte("{")})
	s.frontier(0, 4)
	after := s.one(measured)
	if !strings.HasPrefix(after, "4|4|3|1|2|") || !strings.HasSuffix(after, "|1|0|1|0|0|0|0|4") {
		t.Errorf("after a lost reply and a rejection: %s", after)
	}
	if got := s.query("SELECT source_offset FROM amends.journal"); len(got) != 4 {
		t.Errorf("decisions: %v", got)
	}
	role.Stop(programtest.Deadline)
	s.Env["AMENDS_DATABASE_URL"] = direct
	s.Start("amends -role source -manifest pipeline.json") // a new owner, without the proxy
	s.abort()
	s.frontier(0, 6)
	expect("a restart, a claim and a gap", after)
	s.heldLock(after)
}

// abort leaves an aborted record and its marker in the source.
func (s *space) abort() {
	s.t.Helper()
	producer, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(s.source))
	if err != nil {
		s.t.Fatal(err)
	}
	defer producer.Close()
	if err := producer.BeginTransaction(); err != nil {
		s.t.Fatal(err)
	}
	if err := producer.ProduceSync(s.t.Context(), &kgo.Record{Topic: s.source, Value: []byte("aborted")}).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
	if err := producer.EndTransaction(s.t.Context(), kgo.TryAbort); err != nil {
		s.t.Fatal(err)
	}
	kafkatest.AwaitMarkers(s.t, s.brokers, s.source)
}

// heldLock holds the partition row while a commit waits for it. The first time the waiting backend is ended, which is a
// rollback that counts nothing; the second time the wait ends by itself, and its time is the sample's.
func (s *space) heldLock(before string) {
	s.t.Helper()
	ctx := context.Background()
	other, err := pgx.Connect(ctx, s.Env["AMENDS_DATABASE_URL"])
	if err != nil {
		s.t.Fatal(err)
	}
	defer other.Close(ctx)
	waiting := func() []string {
		return s.query("SELECT pid FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))", int32(other.PgConn().PID()))
	}
	held := func(value string, next int64, while func(pid string)) {
		tx, err := other.Begin(ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := tx.Exec(ctx, "SELECT * FROM amends.partitions WHERE partition = 0 FOR UPDATE"); err != nil {
			s.t.Fatal(err)
		}
		s.load(value)
		var pids []string
		programtest.Await(s.t, "a commit that waits", func() bool { pids = waiting(); return len(pids) == 1 })
		while(pids[0])
		if err := tx.Rollback(ctx); err != nil {
			s.t.Fatal(err)
		}
		s.frontier(0, next)
	}
	held(widget("T-5", 1, "receipt", 1, 5), 7, func(pid string) {
		s.exec("SELECT pg_terminate_backend($1::text::int)", pid)
		if got := s.one(measured); got != before {
			s.t.Errorf("a rollback changed %s to %s", before, got)
		}
	})
	held(widget("T-6", 1, "receipt", 1, 6), 8, func(string) { time.Sleep(300 * time.Millisecond) })
	got := s.one(`SELECT commits, total_records, last_lock_ns >= 300000000 AS long, last_lock_ns <= total_lock_ns AS part, last_pre_commit_ns >= last_lock_ns AS whole,
		samples[6 * 9 - 1] = last_lock_ns AS sampled FROM amends.partitions WHERE partition = 0`)
	if got != "6|6|true|true|true|true" {
		s.t.Errorf("after a wait: %s; %v", got, s.query("SELECT last_lock_ns, total_lock_ns, last_pre_commit_ns, samples FROM amends.partitions WHERE partition = 0"))
	}
	s.exec("UPDATE amends.partitions SET commits = 9223372036854775807, total_records = 9223372036854775806, total_lock_ns = 9223372036854775807 WHERE partition = 0")
	s.load(widget("T-7", 1, "receipt", 1, 7), widget("T-8", 1, "receipt", 1, 8))
	s.frontier(0, 10)
	if got := s.one("SELECT commits, total_records, total_lock_ns FROM amends.partitions WHERE partition = 0"); got != "9223372036854775807|9223372036854775807|9223372036854775807" {
		s.t.Errorf("totals do not saturate: %s", got)
	}
}

// The binding (SC41): a lost COMMIT of either outcome is resolved, the exact repeat gives the same manifest, another topic, an
// orphan, the source itself and each state that S9 forbids are refused. (Pending decisions: the worked session's test.)
func TestSC41Binding(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]faultwire.Action{"SC41 COMMIT lost": faultwire.CutBefore, "SC41 reply lost": faultwire.CutAfter} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newUnbound(t, "")
			direct := s.Env["AMENDS_DATABASE_URL"]
			p := faultwire.New(t, direct)
			s.Env["AMENDS_DATABASE_URL"] = p.URL()
			lost := p.Arm(what, 0, faultwire.CommitOf("insert_binding"))
			s.bind()
			if !lost.Done() {
				t.Fatal("nothing was lost")
			}
			bound := readFile(t, s.Dir, "pipeline.json")
			if again := s.run("amendsctl output-create -manifest source.json -topic " + s.output); again != bound {
				t.Errorf("the exact repeat printed\n%s, at first\n%s", again, bound)
			}
			s.Must(13, "binding", "amendsctl output-create -manifest source.json -topic "+s.output+"-2")
			s.refusesOtherBindings(bound)
		})
	}
	t.Run("SC41 orphan and source", func(t *testing.T) {
		t.Parallel()
		s := newUnbound(t, "")
		if _, err := s.admin.CreateTopic(t.Context(), 2, 1, nil, s.output); err != nil {
			t.Fatal(err)
		}
		s.Must(1, "never adopted", "amendsctl output-create -manifest source.json -topic "+s.output)
		s.Must(2, "must not be the source", "amendsctl output-create -manifest source.json -topic "+s.source)
	})
	for name, sql := range map[string]string{
		"receipt":             "INSERT INTO amends.receipts (first_sequence, next_sequence, output_offset, source_offset, namespace_id, partition) VALUES (0, 1, 0, 0, 1, 0)",
		"view row":            "INSERT INTO amends.view_rows (key_id, version, sequence, cause_offset, cause_revision, digest, close, namespace_id, partition, day, repair_index, repair_count, kind, present, cause_txn_id) VALUES (0, 1, 0, 0, 1, 0, 5, 1, 0, '2026-01-01', 0, 1, 1, true, 'T')",
		"view error":          "INSERT INTO amends.protocol_errors (output_offset, namespace_id, partition, reason) VALUES (0, 1, 0, 'x')",
		"moved view position": "INSERT INTO amends.view_progress (namespace_id, partition, output_offset) VALUES (1, 0, 1)",
	} {
		t.Run("SC41 "+name, func(t *testing.T) {
			t.Parallel()
			s := newUnbound(t, "")
			s.load(widget("T-1", 1, "receipt", 1, 1)) // initialises the namespace
			s.exec(sql)
			s.Must(13, "without a binding", "amendsctl output-create -manifest source.json -topic "+s.output)
			if got := s.query("SELECT topic FROM amends.output_binding"); len(got) != 0 {
				t.Errorf("bound to %v", got)
			}
		})
	}
}

// refusesOtherBindings starts roles with a manifest of which one field of output differs.
func (s *space) refusesOtherBindings(bound string) {
	s.t.Helper()
	m := s.manifestOf("pipeline.json")
	for name, c := range map[string]struct {
		from, to string
		code     int
	}{
		"topic":       {`"topic": "` + s.output + `"`, `"topic": "` + s.source + `"`, 11},
		"incarnation": {m.Output.Incarnation, "kafka:00112233445566778899aabbccddeeff", 11},
	} {
		s.Write("other.json", strings.Replace(bound, c.from, c.to, 1))
		a := s.Run("amends run -manifest other.json -role relay")
		if a.Code != c.code && a.Code != 2 {
			s.t.Errorf("%s: code %d: %s", name, a.Code, a.Cause())
		}
		if a := s.Run("amendsctl view-show -manifest other.json"); a.Code != 13 && a.Code != 2 {
			s.t.Errorf("%s: view-show ended with %d: %s", name, a.Code, a.Cause())
		}
	}
}

// A start with another threshold, opening balance, origin, partition count or digest is refused before anything is read: no
// epoch is installed and no record processed (SC29).
// Shows F18.
func TestSC29ChangedConfiguration(t *testing.T) {
	t.Parallel()
	s := newSpace(t, "")
	s.load(widget("T-1", 1, "receipt", 100, 1))
	bound := readFile(t, s.Dir, "pipeline.json")
	refused := func(code int, cause, manifest string) {
		t.Helper()
		s.Write("other.json", manifest)
		for _, role := range []string{"source", "relay", "view"} {
			s.Must(code, cause, "amends -role "+role+" -manifest other.json")
		}
		s.Must(code, cause, "amendsctl source-load -manifest other.json -file "+programtest.Fixture(t, "before.jsonl"))
		s.Must(6, "UNAVAILABLE", "amendsctl verify -manifest other.json")
	}
	for _, c := range []struct{ cause, from, to string }{
		{"threshold", `"threshold": 60`, `"threshold": 61`},
		{"opening", `"opening_balance": 0`, `"opening_balance": 1`},
		{"origin", `"ledger_origin": "2026-01-01"`, `"ledger_origin": "2025-01-01"`},
		{"scale", `"quantity_scale": 0`, `"quantity_scale": 1`},
	} {
		other := strings.Replace(bound, c.from, c.to, 1)
		if other == bound {
			t.Fatalf("%s is not in %s", c.from, bound)
		}
		refused(13, c.cause, other)
	}
	refused(13, "partitions", strings.ReplaceAll(bound, `"partitions": 2`, `"partitions": 3`))
	s.exec(`UPDATE amends.namespaces SET config = convert_to(replace(convert_from(config, 'UTF8'), '"threshold":60', '"threshold":59'), 'UTF8'),
		digest = sha256(convert_to(replace(convert_from(config, 'UTF8'), '"threshold":60', '"threshold":59'), 'UTF8'))`)
	refused(13, "59", bound)
	if got := s.query("SELECT epoch, frontier FROM amends.partitions"); !slices.Equal(got, []string{"0|0", "0|0"}) {
		t.Errorf("epochs and frontiers: %v", got)
	}
	if got := s.query("SELECT term FROM amends.relay_progress UNION ALL SELECT term FROM amends.view_progress"); !slices.Equal(got, []string{"0", "0", "0", "0"}) {
		t.Errorf("terms: %v", got)
	}
	if got := s.consume(s.source, 0); len(got) != 1 {
		t.Errorf("%d records were loaded", len(got))
	}
}

// Two namespaces of one database, same keys, same partitions: while one's partition rows and guard are held, the other loads,
// processes, publishes and verifies; and a held partition does not hold back another of its own namespace (C20).
func TestC20NoFalseContention(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	a, b := newIn(t, database, "a", twoKeys), newIn(t, database, "b", twoKeys)
	a.bind()
	b.bind()
	a.roles()
	b.roles()
	a.load(widget("T-1", 1, "receipt", 1, 1))
	a.verify(0)
	ctx := context.Background()
	tx, err := a.sql.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	for _, table := range []string{"partitions", "relay_progress", "view_progress", "leases"} {
		sql := "SELECT 1 FROM amends." + table + " JOIN amends.namespaces USING (namespace_id) WHERE namespace = 'a' AND partition = 0 FOR UPDATE OF " + table
		if _, err := tx.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	before, correction, last := example("widget", "berlin")
	b.load(append(append(before, correction...), last...)...)
	began := time.Now()
	b.verify(0)
	took := time.Since(began)
	if d := cmp.Diff(golden(t, "b", "widget", "berlin", 0), b.published(0)); d != "" {
		t.Errorf("b (-by hand +topic):\n%s", d)
	}
	a.load(gadget("G-1", 1, "receipt", 5, 1))
	programtest.Await(t, "partition 1 of a", func() bool {
		return b.one("SELECT frontier FROM amends.partitions JOIN amends.namespaces USING (namespace_id) WHERE namespace = 'a' AND partition = 1") == "1"
	})
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	a.verify(0)
	t.Logf("b verified in %v while a was held", took.Round(time.Millisecond))
}

// Databases of every earlier schema version, populated, are upgraded with nothing changed, and go on (SC36).
func TestSC36PopulatedDatabasesAreUpgraded(t *testing.T) {
	t.Parallel()
	s := newSpace(t, twoKeys)
	roles := s.roles()
	before, correction, last := example("widget", "berlin")
	s.load(append(append(before, correction...), last...)...)
	s.loadRaw(raw{key: []byte(widgetKey), value: []byte("\x00")}, raw{value: []byte(widget("X", 1, "receipt", 1, 1)), partition: 1})
	s.verify(0)
	roles.Stop(programtest.Deadline)
	steps := migrationFiles(t, "/migrations/")
	if len(steps) < 5 {
		t.Fatalf("%d migrations", len(steps))
	}
	for n := 1; n < len(steps); n++ {
		t.Run(fmt.Sprintf("SC36 from version %d", n), func(t *testing.T) {
			old := &space{shell: newShell(t), name: s.name, source: s.source, output: s.output, brokers: s.brokers}
			old.Env["AMENDS_DATABASE_URL"], old.Env["AMENDS_BROKERS"] = pgtest.New(t), s.Env["AMENDS_BROKERS"]
			old.connect()
			for _, name := range []string{"source.json", "pipeline.json"} {
				old.Write(name, readFile(t, s.Dir, name))
			}
			old.schemaOf(steps[:n])
			old.populate(s.sql)
			content := old.content()
			old.run("amendsctl migrate-up")
			for table, rows := range old.content() {
				if want, ok := content[table]; ok {
					if d := cmp.Diff(want, rows); d != "" {
						t.Errorf("%s changed:\n%s", table, d)
					}
				}
			}
			if n == 1 { // no binding yet: it is bound anew and everything is published
				old.output += "-again"
				t.Cleanup(func() { _, _ = s.admin.DeleteTopic(context.Background(), old.output) })
				old.bind()
			}
			// Each of them goes on with a record of its own. The output topic is that of all from version 2 on: a later one finds
			// in it what an earlier one published, which is the same bytes.
			old.load(widget(fmt.Sprint("U-", n), 1, "receipt", int64(n), 2))
			role := old.roles()
			v := old.verify(0)
			if v.Boundary[0].SourceEnd != int64(6+n) || v.Boundary[1].SourceEnd != 1 || v.Rejected != 2 {
				t.Errorf("%+v", v)
			}
			if got := old.one("SELECT close FROM amends.view_rows WHERE kind = 1 AND day = '2026-01-02'"); got != fmt.Sprint(50+n*(n+1)/2) {
				t.Errorf("close %s", got)
			}
			role.Stop(programtest.Deadline)
		})
	}
}

// migrationFiles returns the SQL files below package postgres whose path holds a text, in order.
func migrationFiles(t testing.TB, holds string) (files []string) {
	t.Helper()
	err := filepath.WalkDir("../store/postgres", func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(path, holds) && strings.HasSuffix(path, ".sql") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// schemaOf applies migrations as the release that had no more of them did.
func (s *space) schemaOf(steps []string) {
	s.t.Helper()
	run := func(sql string) {
		if _, err := s.sql.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
			s.t.Fatal(err)
		}
	}
	run(readFile(s.t, migrationFiles(s.t, "/create_ledger")[0]))
	for i, step := range steps {
		text := readFile(s.t, step)
		run(text)
		_, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(step), ".sql"), "_")
		s.exec("INSERT INTO amends.schema_migrations (version, name, checksum) VALUES ($1, $2, sha256($3::bytea))", i+1, name, []byte(text))
	}
}

// columns lists the tables with those columns that a row of this schema has, the ledger of migrations aside.
func (s *space) columns() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, row := range s.query(`SELECT table_name, string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position) AS c FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
		WHERE table_schema = 'amends' AND table_name <> 'schema_migrations' AND table_type = 'BASE TABLE' GROUP BY table_name`) {
		table, columns, _ := strings.Cut(row, "|")
		out[table] = columns
	}
	return out
}

// populate copies the rows of another, newer database, as far as this schema has their tables and columns.
func (s *space) populate(from *pgx.Conn) {
	s.t.Helper()
	ctx := context.Background()
	all := s.columns()
	order := []string{"namespaces", "partitions"} // what others refer to
	for table := range all {
		if !slices.Contains(order, table) {
			order = append(order, table)
		}
	}
	copied := 0
	for _, table := range order {
		var b strings.Builder
		if _, err := from.PgConn().CopyTo(ctx, &b, "COPY (SELECT "+all[table]+" FROM amends."+table+") TO STDOUT"); err != nil {
			s.t.Fatal(err)
		}
		tag, err := s.sql.PgConn().CopyFrom(ctx, strings.NewReader(b.String()), "COPY amends."+table+" ("+all[table]+") FROM STDIN")
		if err != nil {
			s.t.Fatalf("%s: %v", table, err)
		}
		copied += int(tag.RowsAffected())
	}
	if copied < 10 {
		s.t.Fatalf("only %d rows", copied)
	}
}

// content returns every row of every table.
func (s *space) content() map[string][]string {
	s.t.Helper()
	out := map[string][]string{}
	// Columns that are added later have no old rows to compare with: they are left out by their names.
	for table, columns := range s.columns() {
		rows := s.query("SELECT " + oldColumns(columns) + " FROM amends." + table)
		slices.Sort(rows)
		out[table] = rows
	}
	return out
}

// oldColumns leaves out what migrations after the first added to an existing table.
func oldColumns(columns string) string {
	var kept []string
	for _, c := range strings.Split(columns, ", ") {
		if !strings.HasPrefix(c, "last_") && !strings.HasPrefix(c, "total_") && c != "commits" && c != "samples" {
			kept = append(kept, c)
		}
	}
	return strings.Join(kept, ", ")
}

// A changed checksum, a gap and a newer schema are refused with what differs, and nothing is applied (SC36).
// Shows F18.
func TestSC36OtherSchemasAreRefused(t *testing.T) {
	t.Parallel()
	s := newSpace(t, "")
	newest := s.one("SELECT max(version) FROM amends.schema_migrations")
	s.exec("CREATE TABLE amends.kept AS SELECT * FROM amends.schema_migrations")
	for _, c := range []struct{ name, sql, cause string }{
		{"changed checksum", "UPDATE amends.schema_migrations SET checksum = sha256('x') WHERE version = 2", "migration 2"},
		{"gap", "DELETE FROM amends.schema_migrations WHERE version = 2", "missing below"},
		{"newer schema", "INSERT INTO amends.schema_migrations (version, name, checksum) VALUES (99, 'future', sha256('x'))", "migration 99"},
	} {
		s.exec(c.sql)
		for _, line := range []string{"amends -role source -manifest pipeline.json", "amends -role relay -manifest pipeline.json", "amends -role view -manifest pipeline.json",
			"amendsctl migrate-up", "amendsctl view-show -manifest pipeline.json", "amendsctl verify -manifest pipeline.json",
			"amendsctl output-create -manifest source.json -topic x", "amendsctl source-load -manifest source.json -file " + programtest.Fixture(t, "before.jsonl")} {
			if a := s.Run(line); a.Code != 13 || !strings.Contains(a.Cause(), c.cause) {
				t.Errorf("%s: %s: code %d: %s", c.name, line, a.Code, a.Stderr)
			}
		}
		s.exec("DELETE FROM amends.schema_migrations")
		s.exec("INSERT INTO amends.schema_migrations SELECT * FROM amends.kept")
	}
	s.load(widget("T-1", 1, "receipt", 1, 1)) // restored, it works
	if got := s.one("SELECT max(version) FROM amends.schema_migrations"); got != newest {
		t.Errorf("schema version %s, before %s", got, newest)
	}
}
