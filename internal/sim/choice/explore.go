package choice

// Explore calls run with a Source for every list of answers there is, in order, beginning with all zeros, until run
// returns false. run must ask the same questions where the answers before them are the same, and finitely many. It
// returns how many lists it ran.
func Explore(run func(*Source) bool) int {
	n := 0
	for prefix := []byte{}; prefix != nil; n++ {
		s := Replay(prefix)
		if !run(s) {
			return n + 1
		}
		prefix = s.next()
	}
	return n
}

// next returns the list that follows the one taken: nil after the last.
func (s *Source) next() []byte {
	for i := len(s.taken) - 1; i >= 0; i-- {
		if s.taken[i] < s.ways[i] {
			next := append([]byte{}, s.taken[:i+1]...)
			next[i]++
			return next
		}
	}
	return nil
}
