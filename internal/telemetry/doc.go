// Package telemetry says as Prometheus metrics how a namespace is doing.
//
// Owns: the names, labels and meanings of the metrics, and turning one look at a namespace into the answer of one scrape.
//
// Does not own: what is looked at (health), or who asks and may ask (web).
//
// Fails with: nothing. That a service is away is a metric; what it would have said is absent then, never old and never zero.
package telemetry
