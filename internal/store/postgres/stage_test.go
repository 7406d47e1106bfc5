package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres"
)

// A role that may make no temporary tables writes large pages all the same.
func TestLargePageWithoutTemporaryTables(t *testing.T) {
	t.Parallel()
	_, url := openNamespace(t)
	execSQL(t, connect(t, url), `DO $$ BEGIN
		EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
		IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'amends_test_view') THEN CREATE ROLE amends_test_view; END IF;
		GRANT USAGE ON SCHEMA amends TO amends_test_view;
		GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA amends TO amends_test_view;
	END $$`)
	as := "?role=amends_test_view"
	if strings.Contains(url, "?") {
		as = "&" + as[1:]
	}
	ctx := context.Background()
	cfg, err := manifest.Default("claims", "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	n, err := open(t, url, func(o *postgres.Options) { o.URL = url + as }).Namespace(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := n.AcquireService(ctx, store.View, 0, "view", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	const rows = 500
	f, at := &feed{keys: 10}, store.ViewPosition{Cause: -1}
	for i := range 3 {
		page := viewPage(f, at, i*rows, rows, rows)
		if err := n.ApplyViewInput(ctx, l, page); err != nil {
			t.Fatal(err)
		}
		at = page.Next
	}
}
