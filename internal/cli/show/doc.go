// Package show is the commands that show what amends does when processes die: showcase, and the demo's crash.
//
// Owns: choosing the services (named ones, the running embedded stack, or one that it starts), the names of a run, what is
// said while it runs, and where its report is written.
//
// Does not own: the run (showcase/crash), the report's forms (showcase/account), or the demo's other stories (cli).
//
// Fails with: *usage.Error for names that exist and for flags that do not fit; the errors of package crash.
package show
