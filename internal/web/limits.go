package web

import "time"

// Budgets and bounds of requests. What answers a request bounds itself below writeTimeout.
const (
	headerTimeout = 5 * time.Second  // the head of a request
	readTimeout   = 10 * time.Second // all of a request; none has a body that counts
	writeTimeout  = 30 * time.Second // from the head of a request to the end of its answer
	idleTimeout   = 2 * time.Minute  // a connection between two requests, longer than scrapes are apart
	drainTimeout  = 3 * time.Second  // what is being answered when the role is told to stop
	headerBytes   = 16 << 10         // the head of a request
	requests      = 8                // answered at the same time, liveness aside: more are refused
)
