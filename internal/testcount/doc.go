// Command testcount reads the JSON events of go test on its input and tells people what happened.
//
//	go test -json ./... | go run ./internal/testcount -o artifacts/test.json
//
// Owns: a line a package, what failed tests printed, the figures of the others, the names of absences, and the closing line of counts.
//
// Does not own: running the tests.
//
// Fails with: exit code 1 when a test or a build failed, when nothing was tested, or when the input ends in the middle.
package main
