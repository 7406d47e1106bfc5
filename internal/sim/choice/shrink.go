package choice

import "slices"

// Shrink returns a list that still fails and from which nothing can be taken: no run of answers left out, no answer made
// smaller. It asks fails at most budget times; what it returns has always been seen to fail, if list has.
func Shrink(list []byte, budget int, fails func([]byte) bool) []byte {
	best := slices.Clone(list)
	try := func(candidate []byte) bool {
		if budget == 0 {
			return false
		}
		budget--
		if !fails(candidate) {
			return false
		}
		best = trim(candidate)
		return true
	}
	try(trim(best))
	for again := true; again && budget > 0; {
		again = false
		for size := max(len(best)/2, 1); size > 0; size /= 2 {
			for at := 0; at+size <= len(best); {
				switch {
				case try(slices.Concat(best[:at], best[at+size:])):
					again = true
				case anySet(best[at:at+size]) && try(zeroed(best, at, size)):
					again = true
					at += size
				default:
					at += size
				}
			}
		}
		for at := 0; at < len(best); at++ {
			for best[at] > 1 {
				smaller := slices.Clone(best)
				smaller[at]--
				if !try(smaller) || at >= len(best) {
					break
				}
				again = true
			}
			if at >= len(best) {
				break
			}
		}
	}
	return best
}

// trim leaves out the zeros at the end: they are what a Source gives after its end.
func trim(list []byte) []byte {
	for len(list) > 0 && list[len(list)-1] == 0 {
		list = list[:len(list)-1]
	}
	return slices.Clone(list)
}

func zeroed(list []byte, at, size int) []byte {
	z := slices.Clone(list)
	clear(z[at : at+size])
	return z
}

func anySet(list []byte) bool { return slices.ContainsFunc(list, func(b byte) bool { return b != 0 }) }
