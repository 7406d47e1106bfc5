package recovery

import (
	"context"
	"testing"

	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/store"
	"amends/internal/store/postgres"
)

// A change that is committed while its command is told to stop counts: what the command then says of the phase is what the row
// says.
func TestWhatIsCommittedAtTheEndIsKnown(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.New(t, pgtest.Fast), AllowFsyncOff: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg, err := manifest.Default("shop", "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	ns, err := db.Init(t.Context(), cfg, "shop-source")
	if err != nil {
		t.Fatal(err)
	}
	into := *cfg
	into.Namespace = "shop2"
	made, err := manifest.New(into)
	if err != nil {
		t.Fatal(err)
	}
	r := &Rebuild{Origin: &manifest.Manifest{Config: cfg, SourceTopic: "shop-source"}, From: ns, DB: db, Namespace: "shop2", Topic: "shop2-output"}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &Rebuilt{}
	err = r.settle(ctx, out, func() (bool, error) {
		defer stop()
		return ns.Upkeep().BeginRebuild(ctx, "shop2", made.Digest(), made.Canonical(), "shop2-output")
	}, func(b *store.Rebuild) bool { return b.Phase == store.RebuildCreate })
	if err != nil || out.Record == nil || out.Record.Topic != "shop2-output" {
		t.Errorf("%v, record %+v", err, out.Record)
	}
}
