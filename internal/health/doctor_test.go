package health

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres/checkup"
)

// sound are the facts of a namespace with which nothing is wrong, three brokers and a role that may do everything.
func sound(t *testing.T) *Facts {
	t.Helper()
	const source, output = "kafka:00112233445566778899aabbccddeeff", "kafka:ff112233445566778899aabbccddeeff"
	cfg, err := manifest.Default("demo", source)
	if err != nil {
		t.Fatal(err)
	}
	topic := func(name, incarnation string) TopicFacts {
		return TopicFacts{Topic: broker.Topic{Name: name, Incarnation: incarnation, Partitions: 2, Cleanup: "delete", RetentionMS: -1, RetentionBytes: -1, Start: []ledger.Offset{0, 0}},
			Layout: broker.Layout{Replicas: 3, MinInSync: 2, MaxMessageBytes: broker.ProduceBatchBytes}}
	}
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	f := &Facts{Now: now, Newest: now.Add(-time.Minute), Manifest: &manifest.Manifest{SourceTopic: "s", Config: cfg, Output: &manifest.Output{Topic: "o", Incarnation: output, Partitions: 2}},
		Brokers: []Dialed{{Address: "a:1"}}, Source: topic("s", source), Output: topic("o", output),
		Server: &checkup.Server{Version: 180_006, VersionText: "18.6", Encoding: "UTF8", Role: "amends", Database: "amends", Connections: 4, Bytes: 1 << 20, Schema: true, Temporary: true, Usable: true,
			Skew: 3 * time.Millisecond, Trip: time.Millisecond,
			Settings: map[string]string{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "synchronous_standby_names": "", "data_checksums": "on", "autovacuum": "on", "max_connections": "100",
				"superuser_reserved_connections": "3", "reserved_connections": "0", "statement_timeout": "0", "idle_session_timeout": "0", "transaction_timeout": "0"}},
		Migrations: []store.Migration{{Version: 1, Name: "a", Known: true, Applied: true}},
		Progress:   &Progress{Partitions: []Partition{{Relay: &Delivery{Holder: "h"}, View: &Delivery{Holder: "h"}}}},
		Disk:       &Disk{Path: "/data", Free: 50 << 30, Total: 100 << 30}}
	for _, name := range []string{"namespaces", "partitions", "keys", "journal", "snapshots", "quarantine", "receipts", "relay_progress", "leases", "output_binding", "view_progress", "view_keys", "view_rows",
		"protocol_errors", "verifications", "audit_state", "audit_chunks"} {
		f.Server.Privileges = append(f.Server.Privileges, checkup.Privilege{Table: name, Select: true, Insert: true, Update: true, Delete: true})
	}
	return f
}

// Each fault alone makes its own check fail or warn and no other; every warning and failure says why and what to do.
func TestDoctorNamesEachFault(t *testing.T) {
	t.Parallel()
	if d := Examine(sound(t)); d.Failures != 0 || d.Warnings != 0 || d.Unknown != 0 || len(d.Checks) < 35 {
		t.Fatalf("%+v", d)
	}
	set := func(name, value string) func(*Facts) { return func(f *Facts) { f.Server.Settings[name] = value } }
	for name, c := range map[string]struct {
		spoil func(*Facts)
		level Level
		check string
		found string
	}{
		"address":              {func(f *Facts) { f.Brokers = append(f.Brokers, Dialed{"b:2", errors.New("no route")}) }, Failure, "address", "b:2: no route"},
		"credentials":          {func(f *Facts) { f.BrokerError = fmt.Errorf("ping: %w", broker.ErrRefused) }, Failure, "metadata", "broker refused"},
		"partitions":           {func(f *Facts) { f.Source.Topic.Partitions = 3 }, Failure, "source partitions", "3 partitions"},
		"identity":             {func(f *Facts) { f.Output.Topic.Incarnation = "kafka:0" }, Failure, "output identity", "o is kafka:0"},
		"no topic":             {func(f *Facts) { f.Output.Err = broker.ErrNoTopic }, Failure, "output topic", "no such topic"},
		"no topic ids":         {func(f *Facts) { f.Source.Err = &broker.IdentityError{What: "incarnation"} }, Failure, "source identity", "incarnation"},
		"refused topic":        {func(f *Facts) { f.Source.Err = broker.ErrRefused }, Failure, "source topic", "refused"},
		"compaction":           {func(f *Facts) { f.Source.Topic.Cleanup = "compact" }, Failure, "source retention", "cleanup.policy=compact"},
		"retention by size":    {func(f *Facts) { f.Source.Topic.RetentionBytes = 1 }, Failure, "source retention", "retention.bytes=1"},
		"log start":            {func(f *Facts) { f.Source.Topic.Start[1] = 4 }, Failure, "source log start", "1 at 4"},
		"no leader":            {func(f *Facts) { f.Output.Layout.Leaderless = []ledger.Partition{1, 0} }, Failure, "output leaders", "none for partition 0, 1"},
		"one copy":             {func(f *Facts) { f.Source.Layout.Replicas = 1 }, Warning, "source replicas", "1 copy"},
		"out of sync":          {func(f *Facts) { f.Source.Layout.Short = []ledger.Partition{0} }, Warning, "source replicas", "too few in sync on 1 partition"},
		"acknowledged by one":  {func(f *Facts) { f.Source.Layout.MinInSync = 1 }, Warning, "source replicas", "min.insync.replicas=1"},
		"small messages":       {func(f *Facts) { f.Output.Layout.MaxMessageBytes = broker.ProduceBatchBytes - 1 }, Warning, "output message size", "999999"},
		"old server":           {func(f *Facts) { f.Server.Version, f.Server.VersionText = 140_012, "14.12" }, Failure, "version", "14.12"},
		"untested server":      {func(f *Facts) { f.Server.Version = 190_000 }, Warning, "version", "PostgreSQL"},
		"encoding":             {func(f *Facts) { f.Server.Encoding = "LATIN1" }, Failure, "encoding", "LATIN1"},
		"standby":              {func(f *Facts) { f.Server.Standby = true }, Failure, "primary", "this is a standby"},
		"pooler":               {func(f *Facts) { f.Server.Pooled = true }, Failure, "pooler", "stands between"},
		"fsync":                {set("fsync", "off"), Failure, "fsync", "off"},
		"torn pages":           {set("full_page_writes", "off"), Warning, "full_page_writes", "off"},
		"no standby connected": {set("synchronous_standby_names", "b"), Warning, "standbys", "0 standby servers connected"},
		"checksums":            {set("data_checksums", "off"), Warning, "data_checksums", "off"},
		"vacuum":               {set("autovacuum", "off"), Warning, "autovacuum", "off"},
		"few connections":      {set("max_connections", "24"), Warning, "connections", "4 in use, 17 free of 24"},
		"idle sessions":        {set("idle_session_timeout", "1min"), Warning, "idle_session_timeout", "1min"},
		"long transactions":    {set("transaction_timeout", "30s"), Warning, "transaction_timeout", "30s"},
		"lost slot":            {func(f *Facts) { f.Server.Slots = []checkup.Slot{{Name: "s", Status: "lost", Active: true}} }, Warning, "replication slot", "s: in use, 0 bytes of WAL kept, lost"},
		"idle slot":            {func(f *Facts) { f.Server.Slots = []checkup.Slot{{Name: "s", Retained: 2 << 30}} }, Warning, "replication slot", "nobody reads it, 2.0 GiB"},
		"checksum":             {func(f *Facts) { f.Migrations[0].Stored[0] = 1 }, Failure, "migrations", "1 (a) has another checksum"},
		"newer schema":         {func(f *Facts) { f.Migrations[0].Known = false }, Failure, "migrations", "unknown to this binary"},
		"binding":              {func(f *Facts) { f.Binding = store.ErrBinding }, Failure, "binding", "binding differs"},
		"relay work": {func(f *Facts) {
			f.Progress.Partitions[0].Relay.Holder = ""
			f.Progress.Partitions[0].Outbox.Outputs = 1
		}, Warning, "relay leases", "1 partition with work and no holder"},
		"view work": {func(f *Facts) {
			f.Progress.Partitions[0].View.Holder = ""
			f.Progress.Partitions[0].Unapplied.Outputs = 1
		}, Warning, "view leases", "no holder"},
		"stopped":              {func(f *Facts) { f.Progress.Partitions[0].Stop = &Stop{} }, Failure, "stopped", "1 partition stopped"},
		"clock behind":         {func(f *Facts) { f.Server.Skew = -2 * time.Second }, Warning, "clock", "2s behind"},
		"clock ahead":          {func(f *Facts) { f.Server.Skew = 2 * time.Second }, Warning, "clock", "2s ahead of"},
		"record of the future": {func(f *Facts) { f.Newest = f.Now.Add(time.Minute) }, Warning, "broker clock", "2026-11-29T12:01:00Z"},
		"little space":         {func(f *Facts) { f.Disk.Free = 1 << 30 }, Warning, "disk", "1.0 GiB of 100.0 GiB free"},
		"no space":             {func(f *Facts) { f.Disk.Free = 1 << 20 }, Failure, "disk", "1.0 MiB free"},
		"no temporary tables":  {func(f *Facts) { f.Server.Temporary = false }, Warning, "temporary tables", "not allowed"},
		"view role":            {func(f *Facts) { f.Server.Privileges[3].Insert = false }, Warning, "grants", "is enough for: relay, view, audit, reader"},
	} {
		f := sound(t)
		c.spoil(f)
		seen := 0
		for _, one := range Examine(f).Checks {
			if one.Level == Fine || one.Level == Unknown {
				continue
			}
			seen++
			if one.Level != c.level || one.Name != c.check || !strings.Contains(one.Found, c.found) || one.Why == "" || one.Fix == "" {
				t.Errorf("%s: %+v, want %s of %q with %q", name, one, c.level, c.check, c.found)
			}
		}
		if seen != 1 {
			t.Errorf("%s: %d checks are not fine, want one", name, seen)
		}
	}
}

// Missing migrations stop what reads, and nothing that applies them (design section 8); those that do not fit stop everything.
func TestDoctorSaysWhatMissingMigrationsStop(t *testing.T) {
	t.Parallel()
	missing := store.Migration{Version: 2, Name: "b", Known: true}
	for name, c := range map[string]struct {
		migrations []store.Migration
		why        string
	}{
		"none applied": {[]store.Migration{missing}, "commands that read end with 13; a role, output create and source load apply what is missing"},
		"one missing":  {[]store.Migration{{Version: 1, Name: "a", Known: true, Applied: true}, missing}, "commands that read end with 13; a role, output create and source load apply what is missing"},
		"unknown":      {[]store.Migration{{Version: 1, Name: "a", Applied: true}}, "every role and command but migrate ends with 13"},
	} {
		f := sound(t)
		f.Migrations = c.migrations
		found := false
		for _, one := range Examine(f).Checks {
			if one.Name == "migrations" {
				found = true
				if one.Level != Failure || !strings.HasPrefix(one.Why, c.why) {
					t.Errorf("%s: %+v, want %q", name, one, c.why)
				}
			}
		}
		if !found {
			t.Errorf("%s: no check of migrations", name)
		}
	}
}

// What a client says on several lines, as the driver of PostgreSQL does of a server that is away, is one line of the answer.
func TestDoctorSaysErrorsOnOneLine(t *testing.T) {
	t.Parallel()
	f := sound(t)
	f.Server, f.ServerError = nil, errors.New("connect `user=a`:\n\t127.0.0.1:1 (h): refused\n\t127.0.0.1:1 (h): refused\n\t[::1]:1 (h): no route")
	for _, c := range Examine(f).Checks {
		if c.Name == "server" {
			if want := "connect `user=a`: 127.0.0.1:1 (h): refused; [::1]:1 (h): no route"; c.Found != want {
				t.Errorf("%q, want %q", c.Found, want)
			}
			return
		}
	}
	t.Error("no check of the server")
}

// The first that applies decides, at its limit and past it (design section 8).
func TestJudgePrecedence(t *testing.T) {
	t.Parallel()
	seconds := 10.0
	p := &Progress{Partitions: []Partition{{Measurements: &Measurements{}}}, Lag: Lag{Seconds: &seconds}}
	want := func(code int, state State) {
		t.Helper()
		if s := Judge(p, DefaultMaxLag); s.Code != code || s.State != state || (s.Why == "") != (code == 0) {
			t.Errorf("%s %d %q, want %s %d", s.State, s.Code, s.Why, state, code)
		}
	}
	want(0, OK)
	p.Verification = &Verification{Status: "UNAVAILABLE", AgeSeconds: 1e9}
	want(0, OK)
	past := 10.001
	p.Lag.Seconds = &past
	want(3, Late)
	p.Lag.Seconds = nil
	want(0, OK)
	p.Outbox.Seconds = 11
	want(3, Late)
	p.Outbox.Seconds, p.View.Seconds = 0, 11
	want(3, Late)
	p.BlockedKeys = 1
	want(4, Held)
	p.Verification.Status = "DRIFT"
	want(5, Drift)
	p.Partitions[0].Stop = &Stop{Reason: "r"}
	want(11, Stopped)
	if p.Partitions[0].Measurements == nil {
		t.Error("the verdict changed what it judged")
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{0: "0.0 s", 9.94: "9.9 s", 10: "10 s", 59.9: "59 s", 60: "1 min 0 s", 3599: "59 min 59 s", 3600: "1 h 0 min", 172799: "47 h 59 min", 172800: "2 d 0 h"} {
		if got := Age(seconds); got != want {
			t.Errorf("Age(%v) = %q, want %q", seconds, got, want)
		}
	}
}
