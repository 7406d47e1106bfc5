package choice

import "amends/internal/invariant"

// Source answers the questions of one schedule. It is not safe for concurrent use.
type Source struct {
	state    uint64
	recorded []byte
	taken    []byte
	ways     []byte // of each question, how many answers it has
	replay   bool
}

// Random returns a Source whose answers follow from a seed.
func Random(seed uint64) *Source { return &Source{state: seed} }

// Replay returns a Source that gives the recorded answers, and 0 after their end.
func Replay(recorded []byte) *Source { return &Source{recorded: recorded, replay: true} }

// Reset makes s the Source of another seed and keeps its memory.
func (s *Source) Reset(seed uint64) { *s = Source{state: seed, taken: s.taken[:0], ways: s.ways[:0]} }

// One returns 0..n-1, each as likely. n is 1..256.
func (s *Source) One(n int) int { return s.answer(n, func() int { return s.below(n) }) }

// Seldom returns 1..n-1 in about perMille of 1000 cases, each as likely, and else 0. n is 1..256.
func (s *Source) Seldom(n, perMille int) int {
	return s.answer(n, func() int {
		if n < 2 || s.below(1000) >= perMille {
			return 0
		}
		return 1 + s.below(n-1)
	})
}

func (s *Source) answer(n int, draw func() int) int {
	invariant.That(n >= 1 && n <= 256, "a question has 1 to 256 answers")
	a := 0
	switch at := len(s.taken); {
	case !s.replay:
		a = draw()
	case at < len(s.recorded):
		a = int(s.recorded[at]) % n
	}
	s.taken, s.ways = append(s.taken, byte(a)), append(s.ways, byte(n-1))
	return a
}

// below is SplitMix64 cut to 0..n-1.
func (s *Source) below(n int) int {
	s.state += 0x9e3779b97f4a7c15
	z := s.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int(((z ^ z>>31) >> 33) % uint64(n))
}

// Taken returns the answers given so far. It is valid until Reset.
func (s *Source) Taken() []byte { return s.taken }
