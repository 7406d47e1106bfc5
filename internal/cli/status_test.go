package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"amends/internal/programtest"
)

// Every status of a verification that needs running roles, for real, with its code; the others are in exit_test.go (SC26).
func TestSC26StatusesAndCodes(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan programtest.Answer, 1)
	go func() { ended <- x.Call(ctx, "amends run -manifest @pipeline.json") }()
	for _, f := range []string{"before.jsonl", "correction.jsonl", "cancel-last-day.jsonl"} {
		x.Want(0, "published", "amends source load -manifest @pipeline.json -file "+programtest.Fixture(t, f))
	}
	x.Want(0, "", "amends verify -manifest @pipeline.json -deep")
	conn, err := pgx.Connect(t.Context(), x.Env["AMENDS_DATABASE_URL"])
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
		x.Want(5, "DRIFT  1 difference; the first: ROW partition 0 balance widget berlin 2026-01-02", "amends verify -manifest @pipeline.json"+mode)
	}
	tamper("UPDATE amends.view_rows SET close = 50 WHERE close = 51 AND kind = 1")
	tamper("UPDATE amends.journal SET quantity = 101 WHERE quantity = 100")
	x.Want(0, "", "amends verify -manifest @pipeline.json")
	x.Want(5, "JOURNAL partition 0 offset 0", "amends verify -manifest @pipeline.json -deep")
	tamper("UPDATE amends.journal SET quantity = 100 WHERE quantity = 101")
	x.Write("conflict.jsonl", `{"schema":1,"txn_id":"T-1","revision":2,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":71}`)
	x.Want(0, "published", "amends source load -manifest @pipeline.json -file @conflict.jsonl")
	a := x.Want(4, "BLOCKED  1 key blocked", "amends verify -manifest @pipeline.json -deep")
	if !strings.Contains(a.Stdout, "blocked: widget berlin: AMBIGUOUS T-1 r2") {
		t.Error(a.Stdout)
	}
	cancel()
	if a := <-ended; a.Code != 0 {
		t.Errorf("the roles ended with %d: %s", a.Code, a.Stderr)
	}
	// Nothing runs any more: what is loaded now is not processed, and the conflict is listed all the same.
	x.Want(0, "published", "amends source load -manifest @pipeline.json -file "+programtest.Fixture(t, "before.jsonl"))
	a = x.Want(3, "INCOMPLETE  SOURCE_NOT_PROCESSED partition 0 offset 6", "amends verify -manifest @pipeline.json -timeout 5s")
	if !strings.Contains(a.Stdout, "blocked: widget berlin: AMBIGUOUS T-1 r2") {
		t.Error(a.Stdout)
	}
	a = x.Want(4, "BLOCKED  1 key blocked", "amends verify -manifest @pipeline.json -live")
	if !strings.Contains(a.Stdout, "partition 0: source below 6,") {
		t.Error(a.Stdout)
	}
}
