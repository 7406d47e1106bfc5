package operate_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// levels returns the level of each check by area and name; of repeated ones the first.
func (x *space) levels(code int) map[string]string {
	x.t.Helper()
	out := map[string]string{}
	for _, c := range x.want(code, "", "doctor -o json").object(x.t)["checks"].([]any) {
		check := c.(map[string]any)
		name := fmt.Sprint(check["area"], " ", check["name"])
		if _, seen := out[name]; !seen {
			out[name] = check["level"].(string)
		}
		if bad := check["level"] == "failure" || check["level"] == "warning"; bad && (check["fix"] == nil || check["why"] == nil) {
			x.t.Errorf("%v says neither why nor what to do", check)
		}
	}
	return out
}

// are compares levels.
func are(t *testing.T, got map[string]string, level string, names ...string) {
	t.Helper()
	for _, name := range names {
		if got[name] != level {
			t.Errorf("%s is %q, want %q", name, got[name], level)
		}
	}
}

func (x *space) admin() *kadm.Client {
	x.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(x.brokers...))
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// A sound namespace: nothing fails; what is not perfect warns and keeps 0.
func TestDoctorSound(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.run("source,relay,view")
	x.load(worked...)
	x.eventually(0, "OK  lag 0; outbox 0", "status")
	a := x.want(0, "", "doctor")
	if !strings.HasPrefix(a.First(), "OK  nothing fails; ") {
		t.Error(a.First())
	}
	a.has(t, "ok       manifest  manifest             namespace demo, 2 partitions, 2 keys listed, open keys, digest ", "warning  broker    source replicas      1 copy\n", "why: one broker's disk", "fix: in production use")
	got := x.levels(0)
	are(t, got, "ok", "manifest manifest", "manifest output", "broker address", "broker metadata", "broker source identity", "broker source partitions", "broker source retention",
		"broker source log start", "broker source leaders", "broker output identity", "broker output log start", "database version", "database encoding", "database primary", "database pooler",
		"database fsync", "database full_page_writes", "database synchronous_commit", "database autovacuum", "database idle_session_timeout", "database statement_timeout", "schema migrations", "schema namespace", "schema binding", "schema grants", "schema temporary tables", "schema relay leases", "schema view leases",
		"schema stopped", "machine clock", "machine broker clock")
	are(t, got, "warning", "broker source replicas", "broker output replicas")
	are(t, got, "unknown", "machine disk")
	// The tests share their server: others may have many connections at this moment, and one has a slot.
	if slots := got["database replication slots"] + got["database replication slot"]; slots != "ok" {
		t.Errorf("replication slots are %q", slots)
	}
	if connections := got["database connections"]; connections != "ok" && connections != "warning" {
		t.Errorf("connections are %q", connections)
	}
}

// Half of it away: the rest is checked all the same, each in its own line.
func TestDoctorWithHalfOfItMissing(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	brokers, database, file := x.Env["AMENDS_BROKERS"], x.Env["AMENDS_DATABASE_URL"], x.Env["AMENDS_MANIFEST"]
	x.Env["AMENDS_BROKERS"] = "127.0.0.1:1"
	a := x.want(1, "doctor: 2 of ", "doctor")
	a.has(t, "FAILURE  2 checks failed; ", "failure  broker    address              127.0.0.1:1: ")
	got := x.levels(1)
	are(t, got, "failure", "broker address", "broker metadata")
	are(t, got, "unknown", "broker source topic", "broker output topic", "machine broker clock")
	are(t, got, "ok", "database fsync", "schema namespace", "schema binding", "machine clock")

	x.Env["AMENDS_BROKERS"], x.Env["AMENDS_DATABASE_URL"] = brokers, "postgres://nobody:secret-word@127.0.0.1:1/none"
	a = x.want(1, "doctor: 1 of ", "doctor")
	if strings.Contains(a.Stdout+a.Stderr, "secret-word") {
		t.Error("the password is shown")
	}
	got = x.levels(1)
	are(t, got, "failure", "database server")
	are(t, got, "unknown", "schema migrations", "schema namespace", "schema grants", "schema leases", "machine clock", "machine disk")
	are(t, got, "ok", "broker address", "broker source identity")

	delete(x.Env, "AMENDS_DATABASE_URL")
	delete(x.Env, "AMENDS_MANIFEST")
	x.Env["AMENDS_BROKERS"] = "127.0.0.1:1,127.0.0.1:2"
	got = x.levels(1)
	are(t, got, "failure", "manifest manifest", "broker address", "broker metadata", "database server")
	are(t, got, "unknown", "broker topics", "schema namespace")
	x.want(1, "", "doctor").has(t, "AMENDS_DATABASE_URL is not set", "no manifest: name one", "127.0.0.1:2: ")

	x.Env["AMENDS_BROKERS"], x.Env["AMENDS_DATABASE_URL"] = brokers, database
	got = x.levels(1)
	are(t, got, "failure", "manifest manifest")
	are(t, got, "ok", "broker metadata", "schema migrations", "schema grants")

	x.Env["AMENDS_MANIFEST"] = x.Path("source.json")
	got = x.levels(0)
	are(t, got, "warning", "manifest output")
	x.Env["AMENDS_MANIFEST"] = file
	x.Write("broken.json", "{")
	x.want(1, "", "doctor -manifest @broken.json")
	x.want(2, "text or json", "doctor -o yaml")
	x.want(2, "takes no argument", "doctor now")
}

// What SC24 names, before a role meets it.
func TestSC24DoctorSeesTopicsThatChanged(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	admin, ctx := x.admin(), t.Context()
	week := "604800000"
	set := func(v string) {
		t.Helper()
		if _, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &v}}, sourceTopic); err != nil {
			t.Fatal(err)
		}
	}
	set(week)
	x.want(1, "doctor: 1 of ", "doctor").has(t, "failure  broker    source retention     cleanup.policy=delete retention.ms=604800000 retention.bytes=-1\n", "fix: set cleanup.policy=delete, retention.ms=-1")
	set("-1")
	are(t, x.levels(0), "ok", "broker source retention")
	x.load(worked...)
	offsets := kadm.Offsets{}
	offsets.AddOffset(sourceTopic, 0, 2, -1)
	if _, err := admin.DeleteRecords(ctx, offsets); err != nil {
		t.Fatal(err)
	}
	x.want(1, "", "doctor").has(t, "failure  broker    source log start     not 0: 0 at 2\n")
	if _, err := admin.CreatePartitions(ctx, 1, outputTopic); err != nil {
		t.Fatal(err)
	}
	are(t, x.levels(1), "failure", "broker output partitions", "broker source log start")
	if _, err := admin.DeleteTopics(ctx, sourceTopic); err != nil {
		t.Fatal(err)
	}
	are(t, x.levels(1), "failure", "broker source topic")
	if _, err := admin.CreateTopic(ctx, 2, 1, nil, sourceTopic); err != nil {
		t.Fatal(err)
	}
	are(t, x.levels(1), "failure", "broker source identity")
}

// The schema: missing, older, another configuration, a role that may only read, one that may do nothing.
func TestDoctorSchemaAndGrants(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	own := x.Env["AMENDS_DATABASE_URL"]
	x.sql("CREATE ROLE doctor_reader_" + x.suffix() + " LOGIN PASSWORD 'r'; GRANT USAGE ON SCHEMA amends TO doctor_reader_" + x.suffix() + "; GRANT SELECT ON ALL TABLES IN SCHEMA amends TO doctor_reader_" + x.suffix() +
		"; CREATE ROLE doctor_nobody_" + x.suffix() + " LOGIN PASSWORD 'r'")
	x.Env["AMENDS_DATABASE_URL"] = x.as("doctor_reader_"+x.suffix(), own)
	a := x.want(0, "", "doctor")
	a.has(t, "warning  schema    grants               role doctor_reader_"+x.suffix()+" is enough for: reader\n", "why: worker lacks UPDATE on partitions, INSERT on keys, INSERT on journal, INSERT on quarantine, INSERT on snapshots, UPDATE on snapshots; relay lacks ")
	x.Env["AMENDS_DATABASE_URL"] = x.as("doctor_nobody_"+x.suffix(), own)
	are(t, x.levels(1), "failure", "schema grants")
	x.Env["AMENDS_DATABASE_URL"] = own
	x.sql("DROP OWNED BY doctor_reader_" + x.suffix() + "; DROP ROLE doctor_reader_" + x.suffix() + ", doctor_nobody_" + x.suffix())

	other := strings.Replace(x.Read("pipeline.json"), `"threshold": 60`, `"threshold": 61`, 1)
	x.Write("other.json", other)
	x.want(1, "", "doctor -manifest @other.json").has(t, "failure  schema    namespace            ", "threshold")
	x.Write("elsewhere.json", strings.Replace(x.Read("pipeline.json"), `"topic": "`+outputTopic+`"`, `"topic": "amends-test-source2"`, 1))
	x.want(1, "", "doctor -manifest @elsewhere.json").has(t, "failure  schema    binding              ")
	x.exec("DELETE FROM amends.schema_migrations WHERE version = (SELECT max(version) FROM amends.schema_migrations)")
	x.want(1, "", "doctor").has(t, "failure  schema    migrations           ", " applied, 1 missing\n", "fix: migrate up")
	x.want(13, "does not fit this binary; migrate status shows both, migrate up applies what is missing", "status")
	x.Env["AMENDS_DATABASE_URL"] = pgtest.New(t)
	got := x.levels(1)
	are(t, got, "failure", "schema migrations")
	are(t, got, "unknown", "schema namespace")
	are(t, got, "ok", "schema grants")
}

// What doctor says a role lacks is what it lacks: with that granted and nothing else, source, relay and view do their work.
func TestDoctorGrantsAreEnough(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	own, role := x.Env["AMENDS_DATABASE_URL"], "doctor_worker_"+x.suffix()
	x.sql("CREATE ROLE " + role + " LOGIN PASSWORD 'r'; GRANT USAGE ON SCHEMA amends TO " + role + "; GRANT SELECT ON ALL TABLES IN SCHEMA amends TO " + role)
	as := func(url string, do func()) {
		x.Env["AMENDS_DATABASE_URL"] = url
		do()
		x.Env["AMENDS_DATABASE_URL"] = own
	}
	var lacks string
	as(x.as(role, own), func() {
		for _, c := range x.want(0, "", "doctor -o json").object(t)["checks"].([]any) {
			if check := c.(map[string]any); check["name"] == "grants" {
				lacks = check["why"].(string)
			}
		}
	})
	granted := 0
	for _, job := range strings.Split(lacks, "; ") {
		_, list, _ := strings.Cut(job, " lacks ")
		for _, one := range strings.Split(list, ", ") {
			what, table, _ := strings.Cut(one, " on ")
			x.sql("GRANT " + what + " ON amends." + table + " TO " + role)
			granted++
		}
	}
	if granted < 12 {
		t.Fatalf("%d grants of %q", granted, lacks)
	}
	var stop func()
	as(x.as(role, own), func() {
		x.want(0, "", "doctor").has(t, "ok       schema    grants               role "+role+" is enough for: worker, relay, view, audit, reader\n")
		stop = x.run("source,relay,view")
		x.load(append(slices.Clone(worked), assertion("gadget", "oslo", "G-1", 1, "2026-01-01", "receipt", 1))...)
		programtest.Await(t, "the relay of partition 1 has begun: what is no envelope would end it", func() bool {
			return x.count("SELECT count(*) FROM amends.view_rows WHERE partition = 1") > 0
		})
		x.publish(sourceTopic, 0, widgetKey, "rejected")
		x.publish(outputTopic, 1, "k", "no envelope")
		x.eventually(11, "STOPPED  1 partition stopped; partition 1 at output offset 2: ", "status")
		x.eventually(0, "1 record rejected", "diagnostics")
		programtest.Await(t, "the view of partition 0 has everything", func() bool {
			return x.count("SELECT next_sequence FROM amends.view_progress WHERE partition = 0") == 11
		})
		x.want(0, "", "view show").has(t, "balance  widget  berlin    2026-01-02  50")
	})
	stop()
	x.sql("DROP OWNED BY " + role + "; DROP ROLE " + role)
}

// What a server can be set to, and what holds its WAL or its outputs.
func TestDoctorServerSettings(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	own := x.Env["AMENDS_DATABASE_URL"]
	x.Env["AMENDS_DATABASE_URL"] = pgtest.New(t, pgtest.Fast)
	a := x.want(1, "", "doctor")
	a.has(t, "failure  database  fsync                off\n", "fix: set fsync = on and restart")
	x.Env["AMENDS_DATABASE_URL"] = own
	u, err := url.Parse(own)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	x.sql("ALTER DATABASE " + name + " SET idle_session_timeout = '1min'")
	x.sql("SELECT pg_create_physical_replication_slot('slot_" + name + "', true)")
	defer x.sql("SELECT pg_drop_replication_slot('slot_" + name + "')")
	a = x.want(0, "", "doctor")
	a.has(t, "warning  database  idle_session_timeout 1min\n", "ok       database  replication slot     ", "slot_"+name+": nobody reads it, ")
	stop := x.run("source")
	x.load(worked...)
	x.eventually(0, "OK  lag 0; outbox 11 outputs", "status -max-lag 1h")
	stop()
	are(t, x.levels(0), "warning", "schema relay leases")
	x.publish(outputTopic, 1, "k", "no envelope")
	x.run("view")
	x.eventually(11, "STOPPED", "status")
	are(t, x.levels(1), "failure", "schema stopped")
}

// suffix makes names of roles unique to the database of the test.
func (x *space) suffix() string {
	u, err := url.Parse(x.Env["AMENDS_DATABASE_URL"])
	if err != nil {
		x.t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

// as is the URL of another role of the same database.
func (x *space) as(role, address string) string {
	u, err := url.Parse(address)
	if err != nil {
		x.t.Fatal(err)
	}
	u.User = url.UserPassword(role, "r")
	return u.String()
}

// sql runs statements as the role that the commands use.
func (x *space) sql(sql string) {
	x.t.Helper()
	conn, err := pgx.Connect(context.Background(), x.Env["AMENDS_DATABASE_URL"])
	if err != nil {
		x.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		x.t.Fatalf("%s: %v", sql, err)
	}
}
