package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Every status of a verification that needs running roles, for real, with its code; the others are in exit_test.go (SC26).
func TestSC26StatusesAndCodes(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan answer, 1)
	go func() { ended <- x.call(ctx, "amends run -manifest @pipeline.json") }()
	for _, f := range []string{"before.jsonl", "correction.jsonl", "cancel-last-day.jsonl"} {
		x.want(0, "published", "amends source load -manifest @pipeline.json -file "+fixture(t, f))
	}
	x.want(0, "", "amends verify -manifest @pipeline.json -deep")
	conn, err := pgx.Connect(t.Context(), x.env["AMENDS_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tamper := func(sql string) {
		t.Helper()
		if tag, err := conn.Exec(t.Context(), sql); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%s: %v %v", sql, tag, err)
		}
	}
	tamper("UPDATE amends.view_rows SET close = 51 WHERE close = 50 AND kind = 1")
	for _, mode := range []string{"", " -live"} {
		x.want(5, "DRIFT  1 difference; the first: ROW partition 0 balance widget berlin 2026-01-02", "amends verify -manifest @pipeline.json"+mode)
	}
	tamper("UPDATE amends.view_rows SET close = 50 WHERE close = 51 AND kind = 1")
	tamper("UPDATE amends.journal SET quantity = 101 WHERE quantity = 100")
	x.want(0, "", "amends verify -manifest @pipeline.json")
	x.want(5, "JOURNAL partition 0 offset 0", "amends verify -manifest @pipeline.json -deep")
	tamper("UPDATE amends.journal SET quantity = 100 WHERE quantity = 101")
	x.write("conflict.jsonl", `{"schema":1,"txn_id":"T-1","revision":2,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":71}`)
	x.want(0, "published", "amends source load -manifest @pipeline.json -file @conflict.jsonl")
	a := x.want(4, "BLOCKED  1 key blocked", "amends verify -manifest @pipeline.json -deep")
	if !strings.Contains(a.stdout, "blocked: widget berlin: AMBIGUOUS T-1 r2") {
		t.Error(a.stdout)
	}
	cancel()
	if a := <-ended; a.code != 0 {
		t.Errorf("the roles ended with %d: %s", a.code, a.stderr)
	}
	// Nothing runs any more: what is loaded now is not processed, and the conflict is listed all the same.
	x.want(0, "published", "amends source load -manifest @pipeline.json -file "+fixture(t, "before.jsonl"))
	a = x.want(3, "INCOMPLETE  SOURCE_NOT_PROCESSED partition 0 offset 6", "amends verify -manifest @pipeline.json -timeout 1s")
	if !strings.Contains(a.stdout, "blocked: widget berlin: AMBIGUOUS T-1 r2") {
		t.Error(a.stdout)
	}
	a = x.want(4, "BLOCKED  1 key blocked", "amends verify -manifest @pipeline.json -live")
	if !strings.Contains(a.stdout, "partition 0: source below 6,") {
		t.Error(a.stdout)
	}
}
