// Package programtest runs the program in tests: command lines as a user types them, in this process or as processes, and roles
// that run until they are stopped or killed.
//
// Owns: the built binaries, the test binary that stands in for them, the directory and the environment of a command line, the
// processes that a test started and what they wrote, waiting for something to become so, that an answer in JSON is as documented.
//
// Does not own: databases and brokers (packages pgtest and kafkatest), what else a command should print.
//
// Fails with: the test's failure.
package programtest
