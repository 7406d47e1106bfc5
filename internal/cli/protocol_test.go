package cli_test

import (
	"strings"
	"testing"
)

// A group protocol that nobody knows is refused before anything is opened; the three that exist are not.
func TestUnknownGroupProtocolIsUsage(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	for protocol, cause := range map[string]string{"lazy": "the protocols are eager, cooperative and consumer", "": "unknown group protocol",
		"eager": "nowhere.json", "cooperative": "nowhere.json", "consumer": "nowhere.json"} {
		for _, form := range []string{"amends run -role source", "amends -role source"} {
			a := s.Call(t.Context(), form+" -manifest nowhere.json -group-protocol="+protocol)
			if a.Code != 2 || !strings.Contains(a.Stderr, cause) {
				t.Errorf("%s with %q: code %d: %s", form, protocol, a.Code, a.Stderr)
			}
		}
	}
}
