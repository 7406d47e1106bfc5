package operate_test

import (
	"context"
	"log/slog"
	"testing"

	"amends/internal/cli/operate"
	"amends/internal/cli/target"
	"amends/internal/manifest"
)

// While the other roles of a process drain, its site answers; it ends with Close.
func TestSiteAnswersWhileOthersDrain(t *testing.T) {
	t.Parallel()
	web := newSite(t)
	config, err := manifest.Default("drains", "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	at := &target.Target{Manifest: &manifest.Manifest{Config: config, SourceTopic: "source"}}
	ctx, stop := context.WithCancel(t.Context())
	site, err := operate.OpenSite(ctx, &target.Env{Getenv: func(string) string { return "" }}, at, operate.SiteOptions{Listen: web.address, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := site.Role(at, &target.Session{})(ctx, func() []string { return nil }); err != nil {
		t.Fatal(err)
	}
	if code, body := web.get("/livez"); code != 200 {
		t.Errorf("after its role has ended: %d %q", code, body)
	}
	if err := site.Close(); err != nil {
		t.Fatal(err)
	}
	if code, _ := web.get("/livez"); code != 0 {
		t.Errorf("after Close: %d", code)
	}
}
