package doctest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/kafkatest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// The tables and views are those of a migrated database, and every query of the reference runs on one that holds the
// worked example and answers what the block after it shows.
func TestSchemaReference(t *testing.T) {
	t.Parallel()
	url := workedExample(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	const path = "docs/reference/schema.md"
	generated(t, path, "views", relations(t, conn, "v"))
	generated(t, path, "tables", relations(t, conn, "r"))
	for _, doc := range []string{path, "README.md", "docs/start.md"} {
		all := blocks(t, doc, document(t, doc))
		queries := 0
		for i, b := range all {
			if b.language != "sql" {
				continue
			}
			queries++
			query := strings.NewReplacer("'shop'", "'demo'", "'pipeline-demo-1'", "'demo'").Replace(b.text)
			got := answer(t, conn, query)
			if i+1 < len(all) && all[i+1].language == "text" && got != all[i+1].text {
				t.Errorf("%s:%d shows\n%s\nthe answer is\n%s", doc, all[i+1].line, all[i+1].text, got)
			}
		}
		if queries == 0 {
			t.Errorf("%s: no query", doc)
		}
	}
}

// workedExample runs the worked example through all roles as namespace demo and returns its database.
func workedExample(t *testing.T) string {
	t.Helper()
	url, brokers := pgtest.New(t), kafkatest.Embedded(t)
	s := newSpace(t, map[string]string{"AMENDS_DATABASE_URL": url, "AMENDS_BROKERS": strings.Join(brokers, ",")})
	s.write("source.json", s.call("source", "create", "-namespace", "demo", "-topic", "demo-source"))
	s.write("demo.json", s.call("output", "create", "-manifest", s.path("source.json"), "-topic", "demo-output"))
	defer s.start("run", "-manifest", s.path("demo.json"))()
	for _, file := range []string{"before", "correction", "cancel-last-day"} {
		s.call("source", "load", "-manifest", s.path("demo.json"), "-file", root+"/fixtures/"+file+".jsonl")
	}
	s.call("verify", "-deep", "-manifest", s.path("demo.json"))
	programtest.Await(t, "every receipt is written", func() bool { // a verification does not wait for that
		return strings.Contains(s.call("status", "-manifest", s.path("demo.json")), "; outbox 0; ")
	})
	return url
}

// relations lists the views (v) or tables (r) of the schema with their columns and types.
func relations(t *testing.T, conn *pgx.Conn, kind string) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		SELECT c.relname::text, string_agg(format('%s %s', a.attname,
			replace(format_type(a.atttypid, NULL), 'timestamp with time zone', 'timestamptz')), ', ' ORDER BY a.attnum),
			coalesce((SELECT string_agg(k.attname, ', ' ORDER BY array_position(i.indkey::smallint[], k.attnum))
				FROM pg_index AS i JOIN pg_attribute AS k ON k.attrelid = i.indrelid AND k.attnum = ANY (i.indkey)
				WHERE i.indrelid = c.oid AND i.indisprimary), '')
		FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = 'amends'::regnamespace AND c.relkind = $1
		GROUP BY c.oid, c.relname ORDER BY c.relname`, kind)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| name | columns |\n|---|---|\n")
	if kind == "r" {
		b.Reset()
		b.WriteString("| name | primary key | columns |\n|---|---|---|\n")
	}
	n := 0
	for rows.Next() {
		var name, columns, key string
		if err := rows.Scan(&name, &columns, &key); err != nil {
			t.Fatal(err)
		}
		n++
		if kind == "r" {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, key, columns)
		} else {
			fmt.Fprintf(&b, "| `amends.%s` | %s |\n", name, columns)
		}
	}
	if err := rows.Err(); err != nil || n == 0 {
		t.Fatalf("%d relations of kind %s: %v", n, kind, err)
	}
	return b.String()
}

// answer runs a query and writes its rows as a table of text, as psql does.
func answer(t *testing.T, conn *pgx.Conn, query string) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var head []string
	for _, f := range rows.FieldDescriptions() {
		head = append(head, f.Name)
	}
	all := [][]string{head}
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			t.Fatal(err)
		}
		var row []string
		for _, v := range values {
			row = append(row, written(t, v))
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return table(all)
}

func written(t *testing.T, v any) string {
	t.Helper()
	switch v := v.(type) {
	case nil:
		return ""
	case time.Time:
		return v.Format(time.DateOnly)
	case bool, int16, int32, int64, string:
		return fmt.Sprint(v)
	case net.IP:
		return v.String()
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// table aligns the columns of rows, the first being their names.
func table(rows [][]string) string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, v := range row {
			width[i] = max(width[i], len([]rune(v)))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		var line, rule []string
		for i, v := range row {
			line = append(line, v+strings.Repeat(" ", width[i]-len([]rune(v))))
			rule = append(rule, strings.Repeat("-", width[i]))
		}
		b.WriteString(strings.TrimRight(strings.Join(line, " | "), " ") + "\n")
		if n == 0 {
			b.WriteString(strings.Join(rule, "-+-") + "\n")
		}
	}
	return b.String()
}
