package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"amends/internal/cli/show"
	"amends/internal/cli/target"
	"amends/internal/verify"
)

func (a *app) showcase() *cobra.Command { return show.Showcase(a.Env, a.parts()) }

// parts are what showcase and the demo's crash need of the other commands.
func (a *app) parts() show.Parts {
	return show.Parts{Named: a.named, Look: []string{"explain widget berlin 2026-01-02", "view show", "verify -deep"},
		Verify: func(ctx context.Context, t *target.Target, s *target.Session) (*verify.Report, error) {
			return a.verifySession(ctx, t, s, &verify.Job{Deep: true, Timeout: verify.DefaultTimeout})
		}}
}

// named writes the words of a command as this program names it: view show is view-show where names are flat.
func (a *app) named(text string) string {
	for _, c := range table() {
		if after, ok := strings.CutPrefix(text, c.name); ok && a.names == Flat {
			return strings.ReplaceAll(c.name, " ", "-") + after
		}
	}
	return text
}
