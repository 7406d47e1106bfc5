package delivery

import (
	"slices"
	"strings"
)

// Waits says what the service waits for, each cause once, "" when it is ready. A partition on standby takes over by itself and one
// that is stopped goes on by nothing, so that neither makes the service wait.
func (s *Service) Waits() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var causes []string
	if s.away != "" {
		causes = append(causes, s.away)
	}
	for _, one := range s.states {
		if one.Phase == Waiting {
			causes = append(causes, one.Detail)
		}
	}
	slices.Sort(causes)
	return strings.Join(slices.Compact(causes), "; ")
}
