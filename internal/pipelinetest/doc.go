// Package pipelinetest gives a test a whole path in one process: topics on an in-process broker, the store in memory, and
// the three stages as plain functions that do what there is to do and return.
//
// Owns: source topics and manifests, records from assertions, one pass of worker, relay and view.
//
// Does not own: the production roles (worker, delivery): there is no group, lease or retry here, so that a test decides
// which stage has happened.
//
// Fails with: a failed test.
package pipelinetest
