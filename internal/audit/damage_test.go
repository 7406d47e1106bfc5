package audit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"amends/internal/journal"
	"amends/internal/ledger"
	"amends/internal/pipelinetest"
	"amends/internal/verify"
)

// columns says of every table of the schema which columns I20 is about: what the contract determines of the view, the journal
// and the evidence beside it. The others carry the reason why not. A column that is not here fails the test.
var columns = map[string]map[string]string{
	"journal": {"source_offset": "", "key_id": "", "revision": "", "quantity": "", "sequence": "", "namespace_id": "", "partition": "", "day": "",
		"outputs": "", "state": "", "kind": "", "class": "", "rejection": "", "digest": "", "txn_id": "", "body": "",
		"committed_at": "a clock", "broker_ms": "a clock, for show"},
	"quarantine": {"source_offset": "", "key_length": "", "value_length": "", "namespace_id": "", "partition": "", "rejection": "", "key_sha256": "",
		"value_sha256": "", "key": "", "value": ""},
	"keys":      {"key_id": "", "namespace_id": "", "partition": "", "item": "", "location": ""},
	"view_keys": {"key_id": "", "namespace_id": "", "partition": "", "item": "", "location": ""},
	"view_rows": {"key_id": "", "version": "", "sequence": "", "cause_offset": "", "cause_revision": "", "digest": "", "close": "", "previous": "",
		"threshold": "", "namespace_id": "", "partition": "", "day": "", "repair_index": "", "repair_count": "", "kind": "", "present": "",
		"cause_txn_id": "", "status": "", "applied_at": "a clock"},
	"receipts": {"first_sequence": "", "next_sequence": "", "output_offset": "", "namespace_id": "", "partition": "",
		"source_offset": "where to begin looking", "acknowledged_at": "a clock"},
}

// others are the tables without such columns.
var others = map[string]string{
	"schema_migrations": "compared at every start", "namespaces": "compared at every start", "output_binding": "compared at every start",
	"partitions": "positions and measurements", "relay_progress": "a position", "view_progress": "a position", "leases": "who may try",
	"snapshots": "an accelerator", "protocol_errors": "of a stopped partition", "verifications": "for people", "audit_state": "an accelerator",
	"audit_chunks": "an accelerator", "rebuilds": "of a rebuild",
}

// TestI20EveryColumnIsDecided shows I20.
func TestI20EveryColumnIsDecided(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	rows, err := w.conn.Query(t.Context(), `SELECT c.relname, a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'amends'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped`)
	w.ok(err)
	var table, column string
	seen := map[string]bool{}
	_, err = pgx.ForEachRow(rows, []any{&table, &column}, func() error {
		seen[table+"."+column] = true
		if _, ok := columns[table][column]; !ok && others[table] == "" {
			t.Errorf("amends.%s.%s: say whether a corruption of it must be found (columns, others)", table, column)
		}
		return nil
	})
	w.ok(err)
	for table, named := range columns {
		for column := range named {
			if !seen[table+"."+column] {
				t.Errorf("amends.%s has no column %s", table, column)
			}
		}
	}
}

// damaged is a world with everything that the tables can hold, and nothing running.
func damaged(t *testing.T) *world {
	w := newWorld(t, loadConfig)
	stop := w.start()
	w.load(pipelinetest.Before...)
	w.load(pipelinetest.Correction...)
	w.settled()
	w.load(pipelinetest.CancelLastDay...)
	w.load(pipelinetest.Correction...) // a duplicate
	w.load("poison", "", `{"schema":2}`)
	for i, item := range []string{"gear", "bolt", "n\u0000t", "cog", "nut", "pin"} {
		for day := 1; day <= 4; day++ {
			v := receipt(item, fmt.Sprintf("R-%d", day), 1, day, 10*day+i)
			if (day+i)%2 == 0 {
				v = strings.ReplaceAll(strings.ReplaceAll(v, `"receipt"`, `"issue"`), `:4`, `:9`)
			}
			w.load(strings.ReplaceAll(v, "\u0000", `\u0000`))
		}
	}
	w.load(receipt("cog", "R-1", 1, 2, 77), strings.Replace(receipt("bolt", "C-1", 1, 3, 5), "receipt", "closing_count", 1),
		strings.Replace(receipt("gear", "C-1", 1, 3, 0), "receipt", "opening_count", 1), strings.Replace(receipt("gear", "C-1", 3, 3, 8), "receipt", "opening_count", 1),
		receipt("gear", "C-1", 2, 3, 9))
	w.settled()
	stop()
	r := w.deep()
	if r.Status != verify.Blocked || len(r.Blocked) != 1 {
		t.Fatalf("%s, first %+v", r.Status, r.First)
	}
	// What happens to a page on a disk asks no constraint.
	_, err := w.conn.Exec(t.Context(), `DO $$ DECLARE c record; BEGIN
		FOR c IN SELECT conrelid::regclass AS t, conname FROM pg_constraint WHERE connamespace = 'amends'::regnamespace AND contype = 'c' LOOP
			EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.t, c.conname);
		END LOOP; END $$`)
	w.ok(err)
	w.exec(0, "CREATE SCHEMA kept")
	for table := range columns {
		_, err := w.conn.Exec(t.Context(), fmt.Sprintf("CREATE TABLE kept.%s AS TABLE amends.%[1]s", table))
		w.ok(err)
	}
	return w
}

// added are statements that add a row like the one at a place.
var added = map[string]string{
	"journal":    `INSERT INTO amends.journal SELECT (jsonb_populate_record(t, jsonb_build_object('source_offset', t.source_offset + 1000))).* FROM amends.journal AS t WHERE ctid = '%s'`,
	"quarantine": `INSERT INTO amends.quarantine SELECT (jsonb_populate_record(t, jsonb_build_object('source_offset', t.source_offset + 1000))).* FROM amends.quarantine AS t WHERE ctid = '%s'`,
	"view_rows":  `INSERT INTO amends.view_rows SELECT (jsonb_populate_record(t, jsonb_build_object('day', '2026-02-01'))).* FROM amends.view_rows AS t WHERE ctid = '%s' AND kind < 3`,
	"receipts": `INSERT INTO amends.receipts SELECT (jsonb_populate_record(t, jsonb_build_object('first_sequence', t.first_sequence + 1000, 'next_sequence', t.next_sequence + 1000,
		'output_offset', t.output_offset + 1000))).* FROM amends.receipts AS t WHERE ctid = '%s'`,
}

// mend puts a table back.
func (w *world) mend(table string) {
	w.Helper()
	w.ok(pgx.BeginFunc(context.Background(), w.conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(context.Background(), fmt.Sprintf("DELETE FROM amends.%s; INSERT INTO amends.%[1]s SELECT * FROM kept.%[1]s", table))
		return err
	}))
}

// damage is one corruption of a table: the row by its place in the order of all, as it was, and the statement.
type damage struct {
	table, what string
	offsets     []int64 // of journal or quarantine rows that may be named
	keys        []string
}

// hurt makes one random corruption and says what may be named; false where the database refuses it, or nothing changed.
func (w *world) hurt(r *rand.Rand, table, column string) (d damage, ok bool) {
	w.Helper()
	ctx := context.Background()
	var places []string
	rows, err := w.conn.Query(ctx, fmt.Sprintf("SELECT ctid::text FROM amends.%s AS t ORDER BY (to_jsonb(t) - 'committed_at' - 'applied_at' - 'acknowledged_at')::text COLLATE \"C\"", table))
	w.ok(err)
	places, err = pgx.CollectRows(rows, pgx.RowTo[string])
	w.ok(err)
	at := places[r.IntN(len(places))]
	d = w.target(table, at)
	if column == "" {
		d.what = "row deleted"
		w.exec(1, fmt.Sprintf("DELETE FROM amends.%s WHERE ctid = $1::text::tid", table), at)
		return d, true
	}
	if sql := added[table]; column == "+" {
		d.what = "row added"
		if table == "journal" || table == "quarantine" {
			d.offsets = append(d.offsets, d.offsets[0]+1000)
		}
		tag, err := w.conn.Exec(ctx, fmt.Sprintf(sql, at))
		return d, err == nil && tag.RowsAffected() == 1
	}
	value := w.other(r, table, column, at)
	d.what = column + " = " + value
	tag, err := w.conn.Exec(ctx, fmt.Sprintf("UPDATE amends.%s SET %s = %s WHERE ctid = '%s' AND %[2]s IS DISTINCT FROM %[3]s RETURNING ctid::text", table, column, value, at))
	if err != nil || tag.RowsAffected() != 1 {
		return d, false
	}
	var now string
	w.ok(w.conn.QueryRow(ctx, fmt.Sprintf("SELECT ctid::text FROM amends.%s WHERE xmin::text = (SELECT max(xmin::text::bigint)::text FROM amends.%[1]s)", table)).Scan(&now))
	after := w.target(table, now)
	d.offsets, d.keys = append(d.offsets, after.offsets...), append(d.keys, after.keys...)
	return d, true
}

// target says what a row is: its source offsets, and the names of its stock key.
func (w *world) target(table, at string) (d damage) {
	w.Helper()
	d.table = table
	query := map[string]string{
		"journal":    `SELECT ARRAY[t.source_offset], ARRAY[encode(k.item, 'hex')] FROM amends.journal AS t LEFT JOIN amends.keys AS k USING (namespace_id, partition, key_id) WHERE t.ctid = '%s'`,
		"quarantine": `SELECT ARRAY[t.source_offset], '{}'::text[] FROM amends.quarantine AS t WHERE t.ctid = '%s'`,
		"keys": `SELECT (SELECT array_agg(j.source_offset) FROM amends.journal AS j WHERE j.partition = t.partition AND j.key_id = t.key_id), ARRAY[encode(t.item, 'hex')]
			FROM kept.keys AS t WHERE t.item = (SELECT item FROM amends.keys WHERE ctid = '%s') OR t.key_id = (SELECT key_id FROM amends.keys WHERE ctid = '%[1]s')
			ORDER BY 1 LIMIT 1`,
		"view_keys": `SELECT '{}'::bigint[], ARRAY[encode(t.item, 'hex')] FROM amends.view_keys AS t WHERE t.ctid = '%s'`,
		"view_rows": `SELECT '{}'::bigint[], ARRAY[encode(k.item, 'hex')] FROM amends.view_rows AS t LEFT JOIN amends.view_keys AS k USING (namespace_id, partition, key_id) WHERE t.ctid = '%s'`,
		"receipts":  `SELECT '{}'::bigint[], '{}'::text[] FROM amends.receipts AS t WHERE t.ctid = '%s'`,
	}[table]
	var names []*string
	if err := w.conn.QueryRow(context.Background(), fmt.Sprintf(query, at)).Scan(&d.offsets, &names); err != nil {
		return d // a key that is no more
	}
	for _, n := range names {
		if n != nil {
			d.keys = append(d.keys, *n)
		}
	}
	return d
}

// other returns an expression of another value for a column of the row at a place.
func (w *world) other(r *rand.Rand, table, column, at string) string {
	w.Helper()
	var kind string
	var value *string
	w.ok(w.conn.QueryRow(context.Background(), fmt.Sprintf("SELECT pg_typeof(%s)::text, %[1]s::text FROM amends.%s WHERE ctid = '%s'", column, table, at)).Scan(&kind, &value))
	if value != nil && r.IntN(12) == 0 {
		return "NULL"
	}
	switch kind {
	case "bigint", "integer", "smallint":
		if r.IntN(3) == 0 {
			return fmt.Sprint(r.IntN(100))
		}
		return fmt.Sprintf("coalesce(%s, 0) + %d", column, []int{-2, -1, 1, 2, 3, 40}[r.IntN(6)])
	case "boolean":
		return "NOT " + column
	case "date":
		return fmt.Sprintf("DATE '2026-01-%02d'", 1+r.IntN(9))
	case "text":
		states := []string{`{"status":"READY","reasons":[],"more":0}`, `{"status":"READY","reasons":[], "more":0}`, `{"status":"BLOCKED","reasons":[{"code":"AMBIGUOUS","txn_id":"R-1","revision":1}],"more":0}`,
			`{"status":"BLOCKED","reasons":[{"code":"AMBIGUOUS","txn_id":"R-1","revision":1}],"more":1}`, `{"status":"BLOCKED","reasons":[{"code":"COUNTS_DISAGREE","day":"2026-01-01"}],"more":0}`, "x"}
		return "'" + states[r.IntN(len(states))] + "'"
	}
	if value == nil {
		return "'\\x00'::bytea"
	}
	if column == "body" && r.IntN(2) == 0 {
		return w.rewritten(r, *value)
	}
	n := (len(*value) - 2) / 2
	switch r.IntN(4) {
	case 0:
		return fmt.Sprintf("%s || '\\x00'::bytea", column)
	case 1:
		return fmt.Sprintf("substring(%s FROM 1 FOR %d)", column, max(n-1, 0))
	}
	if n == 0 {
		return "'\\x01'::bytea"
	}
	i := r.IntN(n)
	return fmt.Sprintf("set_byte(%s, %d, get_byte(%[1]s, %[2]d) # %d)", column, i, 1<<r.IntN(8))
}

// rewritten is a journal body with another output and the checksum that belongs to it.
func (w *world) rewritten(r *rand.Rand, value string) string {
	var body []byte
	if _, err := fmt.Sscanf(value, `\x%x`, &body); err != nil {
		w.Fatal(err)
	}
	changes, err := journal.AppendChanges(nil, body)
	w.ok(err)
	c := &changes[r.IntN(len(changes))]
	switch {
	case r.IntN(2) == 0 || !c.Present || c.Kind == ledger.TrustStatus:
		c.Version++
	default:
		c.Close++
	}
	return fmt.Sprintf("'\\x%x'::bytea", journal.AppendBody(nil, changes))
}

// named reports whether a difference names what was damaged.
func (d *damage) named(x *verify.Difference) bool {
	if slices.Contains(d.keys, fmt.Sprintf("%x", x.ID.Key.Item)) {
		return true
	}
	for _, at := range d.offsets {
		if x.What == verify.Journal && x.Offset == at || strings.Contains(x.Detail, fmt.Sprintf("journal row at offset %d:", at)) {
			return true
		}
	}
	switch d.table {
	case "quarantine": // rows that no decision has are counted
		return x.What == verify.Journal && strings.Contains(x.Detail, "quarantine rows")
	case "receipts":
		return x.What == verify.Topic && strings.Contains(x.Detail, "receipt")
	}
	return false
}

// I20: each single corruption of what the contract determines of the view, the journal and the evidence is found, and what is
// named first is what was damaged.
// Shows I20.
func TestI20CorruptedRowsAreFoundAndNamed(t *testing.T) {
	t.Parallel()
	w := damaged(t)
	r := rand.New(rand.NewPCG(20, 26))
	var kinds [][2]string
	for table, named := range columns {
		kinds = append(kinds, [2]string{table, ""})
		if added[table] != "" {
			kinds = append(kinds, [2]string{table, "+"})
		}
		for column, exempt := range named {
			if exempt == "" {
				kinds = append(kinds, [2]string{table, column})
			}
		}
	}
	slices.SortFunc(kinds, func(a, b [2]string) int { return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1]) })
	done, refused := map[[2]string]int{}, 0
	for n := 0; n < 160; {
		kind := kinds[n%len(kinds)]
		d, ok := w.hurt(r, kind[0], kind[1])
		if !ok {
			if refused++; refused > 2_000 {
				t.Fatalf("the database refuses every %v", kind)
			}
			continue
		}
		report := w.judged(n)
		switch {
		case report.Status != verify.Drift:
			t.Errorf("corruption %d, %s: %s: not found: %s %v", n, d.table, d.what, report.Status, report.Reasons)
		case !d.named(report.First):
			t.Errorf("corruption %d, %s: %s of offsets %v keys %v: found, first named: %+v", n, d.table, d.what, d.offsets, d.keys, report.First)
		}
		w.mend(kind[0])
		done[kind]++
		n++
	}
	if report := w.judged(0); report.Status != verify.Blocked {
		t.Errorf("mended: %s, first %+v", report.Status, report.First)
	}
	t.Logf("%d kinds, %d tries that the database refused", len(done), refused)
}

// judged verifies deep, or by a full cycle of an audit.
func (w *world) judged(n int) *verify.Report {
	w.Helper()
	if n%2 == 0 {
		return w.deep()
	}
	report, err := w.job().Audit(w.Context(), &verify.Basis{}, true)
	w.ok(err)
	return report
}
