// Package progress shows how far long work is and how long it will still take.
//
// Owns: one live line with a bar, done of total, rate and time left where the output is a terminal; elsewhere a plain line
// every ten seconds. Work that takes less than a second shows nothing. What is shown ends with one plain line.
//
// Does not own: what is counted (the caller), or results, which go to another stream.
//
// Fails with: nothing; a stream that cannot be written to shows nothing.
//
//	screen := progress.On(e.Stderr, e.Getenv)
//	bar := screen.Start("load", "records", total) // total 0: unknown
//	defer bar.Done()
//	bar.Add(1000)
package progress
