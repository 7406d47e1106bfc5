package fault

// Kind is a kind of trouble that a schedule may hold; each is counted when it happens.
type Kind uint8

// The kinds. What happens to one call of the store or broker comes first, then what happens to actors and services.
const (
	Refused       Kind = iota // a definite failure, nothing was done
	LostWritten               // done, and the reply lost
	LostUnwritten             // not done, and the reply lost
	Late                      // done after the caller was told that the outcome is unknown
	Unavailable               // nothing was sent
	CrashBefore               // the process dies and nothing was done
	CrashAfter                // the process dies and it was done
	Between                   // others act while the call is on its way
	SendCut                   // of a publication a prefix was written and acknowledged, the rest is unknown
	Rebalance                 // a partition moves to another worker, the former one is asked
	Expiry                    // a partition moves to another worker, the former one does not know
	Takeover                  // a delivery lease is taken from a holder that does not know
	Fenced                    // somebody who lost ownership tried to go on, and was refused
	Paused                    // a process stops for a while
	Killed                    // a process dies between two calls
	Restarted                 // a process is stopped in order and started again
	ClockJump                 // seconds pass at once
	DatabaseAway              // the database does not answer for a while
	BrokerAway                // the broker does not answer for a while
	Promoted                  // another server takes over, nothing lost
	PromotedLossy             // another server takes over and a committed tail is lost
	Recreated                 // a topic is deleted and created again
	Retention                 // a topic's retention becomes finite
	Repeat                    // the output topic holds a sequence twice
	PageCut                   // a reader returned less than there was
	Transaction               // the source holds an open or aborted transaction, or a bare marker
	Kinds                     // how many kinds there are
)

var names = [Kinds]string{Refused: "refused", LostWritten: "lost-written", LostUnwritten: "lost-unwritten", Late: "late", Unavailable: "unavailable",
	CrashBefore: "crash-before", CrashAfter: "crash-after", Between: "between", SendCut: "send-cut", Rebalance: "rebalance", Expiry: "expiry", Takeover: "takeover",
	Fenced: "fenced", Paused: "paused", Killed: "killed", Restarted: "restarted", ClockJump: "clock-jump", DatabaseAway: "database-away", BrokerAway: "broker-away",
	Promoted: "promoted", PromotedLossy: "promoted-lossy", Recreated: "recreated", Retention: "retention", Repeat: "repeat", PageCut: "page-cut", Transaction: "transaction"}

// String returns the kind's stable name.
func (k Kind) String() string { return names[k] }

// Counts are how often each kind happened.
type Counts [Kinds]int64

// Add adds o to c.
func (c *Counts) Add(o *Counts) {
	for i := range c {
		c[i] += o[i]
	}
}
