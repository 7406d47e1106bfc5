package cli_test

import (
	"context"
	"testing"
)

// A history may take long to write: the first interrupt ends it, and it says so.
func TestGenerateEndsWhenItIsStopped(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, line := range []string{"amends generate -records 20000", "amends generate -law short -records 20000", "amends generate -config shop"} {
		if a := s.Call(ctx, line); !a.Is(1, "context canceled") || a.Stdout != "" {
			t.Errorf("%s: code %d, %d bytes; %s", line, a.Code, len(a.Stdout), a.Stderr)
		}
	}
}
