package progress

import "sync"

// Stages shows work that names its stages as it goes: one bar a stage, one after the other.
type Stages struct {
	screen *Screen
	units  map[string]string
	bar    *Bar
	stage  string
	mu     sync.Mutex
}

// Stages returns the display of such work; units says what each stage counts.
func (s *Screen) Stages(units map[string]string) *Stages { return &Stages{screen: s, units: units} }

// Report says how far a stage is; total is 0 where nobody knows. A stage other than the last one begins, and ends that.
func (s *Stages) Report(stage string, done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar == nil || stage != s.stage {
		s.bar.Done()
		s.stage, s.bar = stage, s.screen.Start(stage, s.units[stage], total)
		s.bar.From(done)
	}
	s.bar.SetTotal(total)
	s.bar.Set(done)
}

// Hide takes the live line off the screen, before something else is written to the same terminal.
func (s *Stages) Hide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bar.Hide()
}

// Done ends the last stage.
func (s *Stages) Done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bar.Done()
}
