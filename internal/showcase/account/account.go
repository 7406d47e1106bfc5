package account

import (
	"time"

	"amends/internal/report"
)

// The outcomes of a run.
const (
	Pass = "PASS" // every step showed what it should, and the verification is PASS
	Fail = "FAIL" // Failed says what did not
)

// Account is the report of one run. Its JSON form only ever gains members. Times are UTC by this machine's clock.
type Account struct {
	Schema      int          `json:"schema"`
	Status      string       `json:"status"`
	Failed      *Failure     `json:"failed"` // null unless Status is FAIL
	Scenario    string       `json:"scenario"`
	Namespace   string       `json:"namespace"`
	SourceTopic string       `json:"source_topic"`
	OutputTopic string       `json:"output_topic"`
	Directory   string       `json:"directory"` // holds the manifest and what the processes said
	Manifest    string       `json:"manifest"`
	Services    Services     `json:"services"`
	Started     time.Time    `json:"started"`
	Seconds     float64      `json:"seconds"`
	Steps       []Step       `json:"steps"`
	Kills       []Kill       `json:"kills"`
	Handover    *Handover    `json:"handover"` // null where there was none
	Processes   []Process    `json:"processes"`
	Verify      *report.JSON `json:"verify"`   // null where the run ended before
	Commands    []string     `json:"commands"` // to look further
}

// Failure names the step that ended a run, and why.
type Failure struct {
	Step  string `json:"step"`
	Cause string `json:"cause"`
}

// Services are what the run used. Database is host:port/name, without credentials.
type Services struct {
	PostgreSQL string   `json:"postgresql"` // its version
	Database   string   `json:"database"`
	Brokers    []string `json:"brokers"`
	Embedded   bool     `json:"embedded"`
}

// Step is one part of a run. Findings are what was looked at, in order; Moments are durable state as it was read.
type Step struct {
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Seconds  float64   `json:"seconds"`
	Findings []Finding `json:"findings"`
	Moments  []Moment  `json:"moments"`
	Events   []Event   `json:"events"`
}

// Finding is one thing that a step had to show.
type Finding struct {
	Text string `json:"text"`
	OK   bool   `json:"ok"`
}

// Event is something that the run did.
type Event struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Moment is durable state, read from PostgreSQL in one snapshot.
type Moment struct {
	When  string    `json:"when"`
	At    time.Time `json:"at"`
	State State     `json:"state"`
}

// State is what is durable of a namespace. Story are the view's rows of the stock key of the story, in the order of the
// view.
type State struct {
	Partitions []Partition `json:"partitions"`
	Story      []Row       `json:"story"`
}

// Partition is what is durable of one partition. A digest is SHA-256 over all rows, in hex.
type Partition struct {
	Partition     int32  `json:"partition"`
	Epoch         int64  `json:"epoch"`
	Frontier      int64  `json:"source_frontier"`
	Sequence      int64  `json:"next_sequence"`
	JournalRows   int64  `json:"journal_rows"`
	JournalDigest string `json:"journal_digest"`
	RelayTerm     int64  `json:"relay_term"`
	RelaySequence int64  `json:"relay_sequence"`
	ViewTerm      int64  `json:"view_term"`
	ViewSequence  int64  `json:"view_sequence"`
	ViewFrontier  int64  `json:"view_frontier"`
	ViewRows      int64  `json:"view_rows"`
	ViewWithdrawn int64  `json:"view_withdrawn"`
	ViewDigest    string `json:"view_digest"`
}

// Row is one output of the view. Close is null for a withdrawn one.
type Row struct {
	Day     string `json:"day"`
	Kind    string `json:"kind"`
	Version int64  `json:"version"`
	Present bool   `json:"present"`
	Close   *int64 `json:"close"`
}

// Kill is a process that was ended by SIGKILL, in which phase of its work, and what its server process did then.
type Kill struct {
	At           time.Time `json:"at"`
	Process      string    `json:"process"`
	PID          int       `json:"pid"`
	Signal       string    `json:"signal"`
	Phase        string    `json:"phase"`
	Backend      int32     `json:"backend"`       // the server's process for its connection
	BackendState string    `json:"backend_state"` // of pg_stat_activity, just before
	BackendGone  float64   `json:"backend_gone_seconds"`
}

// Handover is the relay's change of process.
type Handover struct {
	At      time.Time `json:"at"`
	FromPID int       `json:"from_pid"`
	ToPID   int       `json:"to_pid"`
	Signal  string    `json:"signal"`
	Seconds float64   `json:"seconds"` // from the signal until the successor holds every partition
}

// Process is one that the run started. Ended is null where it never ended by the end of the report; End is how it ended.
type Process struct {
	Name    string     `json:"name"`
	PID     int        `json:"pid"`
	Command string     `json:"command"`
	Log     string     `json:"log"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended"`
	End     string     `json:"end"`
}
