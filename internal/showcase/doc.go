// Package showcase tells what amends does, on real parts: the worked example and a year of retail.
//
// Owns: the namespaces of the demos (their topics, configuration and manifest file), which records a demo still has to
// load, waiting until they have reached the view, and the words of the story, all of which it reads from the journal and
// the view.
//
// Does not own: the services (embedded), the roles, loading and verification, which come in as a Pipeline; or runs whose
// processes are killed (showcase/crash).
//
// Fails with: errors of the Pipeline, wrapped; *StalledError when the view does not get there.
package showcase
