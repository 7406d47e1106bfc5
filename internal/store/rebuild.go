package store

import "time"

// RebuildPhase is how far a rebuild got. Each is recorded before the work that it names begins (S11).
type RebuildPhase string

// The phases, in their order.
const (
	RebuildCreate RebuildPhase = "create" // the namespace is there; its output topic is made
	RebuildBind   RebuildPhase = "bind"   // the topic is there; the namespace is bound to it
	RebuildRefold RebuildPhase = "refold" // the source is read and decided
	RebuildDrain  RebuildPhase = "drain"  // what was decided is published and reaches the view
	RebuildVerify RebuildPhase = "verify" // all of it is compared with an independent recomputation
	RebuildDone   RebuildPhase = "done"
)

// Rebuild is the record of origin of a namespace that a rebuild made. Incarnation is "" in phase create, when nobody can
// tell whether Topic was made. Status is the verification's, PASS or BLOCKED, and Finished set, in phase done alone.
type Rebuild struct {
	Started     time.Time
	Finished    time.Time
	Origin      string // namespace whose source and configuration it has
	Namespace   string
	Topic       string
	Incarnation string
	Phase       RebuildPhase
	Status      string
}
