package telemetry

import "time"

// Budgets of one scrape, below the 10 s that Prometheus waits unless told.
const (
	turnBudget  = 4 * time.Second // for the scrape before it to end
	lookBudget  = 4 * time.Second // the snapshot and what the source topic says
	askBudget   = time.Second     // the broker alone, where the database is away
	blockedMost = 100             // keys whose block's beginning is looked for
)
