package diagnose

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"amends/internal/health"
	"amends/internal/ledger"
	"amends/internal/store/postgres/reader"
)

// Section is a list of the report.
type Section string

// The sections. All is every one of them, each from its beginning.
const (
	All        Section = ""
	Rejections Section = "rejected"
	Current    Section = "current"
	Superseded Section = "superseded"
)

// Valid reports whether s names a section.
func (s Section) Valid() bool {
	return s == All || s == Rejections || s == Current || s == Superseded
}

// MaxLimit bounds the entries of one list.
const MaxLimit = 1000

// ErrPlace: it is not what a page of this section names as its end.
var ErrPlace = errors.New("not the end of a page")

// Report is one page of each list, from one snapshot of the database.
type Report struct {
	At              time.Time  `json:"at"` // of the snapshot, by the database's clock
	Namespace       string     `json:"namespace"`
	Schema          int        `json:"schema"`
	Scale           int32      `json:"quantity_scale"` // quantities are in units of 10^-Scale
	Rejected        Rejected   `json:"rejected"`
	BlockedKeys     int64      `json:"blocked_keys"`     // in the view
	ConflictRecords int64      `json:"conflict_records"` // of class CONFLICT or STALE_CONFLICT
	Current         []Problem  `json:"current"`
	CurrentNext     string     `json:"current_next,omitempty"`
	Superseded      []Conflict `json:"superseded"`
	SupersededNext  string     `json:"superseded_next,omitempty"`
}

// Rejected is the quarantine (S3): how many by code, and one page of the records. Next is where another page begins, "" for none.
type Rejected struct {
	Next    string   `json:"next,omitempty"`
	Codes   []Code   `json:"codes"`
	Records []Record `json:"records"`
	Total   int64    `json:"total"`
}

// Code counts the records rejected with one code.
type Code struct {
	Code    string `json:"code"`
	Records int64  `json:"records"`
}

// Record is a rejected record with its exact bytes, nil where absent. Whole is false where only the beginning of them is kept
// (TOO_LARGE). Decided and Broker are nil where the journal does not tell.
type Record struct {
	Decided   *time.Time
	Broker    *time.Time
	Evidence  ledger.Evidence
	Code      ledger.Rejection
	Offset    ledger.Offset
	Partition ledger.Partition
}

// Whole reports whether all bytes of the record are kept.
func (r *Record) Whole() bool {
	e := &r.Evidence
	return int64(len(e.Key)) == e.KeyLength && int64(len(e.Value)) == e.ValueLength
}

// Problem is a reason why a key is blocked (S7), with the assertions that make it. Since is when the block of the key began.
type Problem struct {
	Since      *health.Since `json:"since"`
	Item       string        `json:"item"`
	Location   string        `json:"location"`
	Code       string        `json:"code"`
	TxnID      string        `json:"txn_id,omitempty"`
	Day        string        `json:"day,omitempty"`
	Candidates []Candidate   `json:"candidates"`
	Revision   int64         `json:"revision,omitempty"`
	More       int64         `json:"more,omitempty"` // ambiguous transactions of the key beyond those named
	Partition  int32         `json:"partition"`
}

// Conflict is a revision of a transaction with several payloads that a higher revision has settled, or (Current) that none has and
// that does not stand among the problems of the same report: beyond those that a status names, or not in the view yet.
type Conflict struct {
	Item       string      `json:"item"`
	Location   string      `json:"location"`
	TxnID      string      `json:"txn_id"`
	Candidates []Candidate `json:"candidates"`
	Revision   int64       `json:"revision"`
	Highest    int64       `json:"highest_revision"`
	Partition  int32       `json:"partition"`
	Current    bool        `json:"current,omitempty"`
}

// Candidate is one payload, where it was first said, and how many records say it. Resolve is a line for source load: of an
// ambiguous transaction it makes this payload apply, of a count it withdraws it; "" where there is no higher revision.
type Candidate struct {
	Decided   time.Time `json:"decided"`
	Broker    time.Time `json:"broker_time"`
	TxnID     string    `json:"txn_id"`
	Class     string    `json:"class"`
	State     string    `json:"state"`
	Kind      string    `json:"kind,omitempty"`
	Day       string    `json:"day,omitempty"`
	Resolve   string    `json:"resolve,omitempty"`
	Quantity  *int64    `json:"quantity,omitempty"`
	Revision  int64     `json:"revision"`
	Offset    int64     `json:"offset"`
	Records   int64     `json:"records"`
	Partition int32     `json:"partition"`
}

// Job reads one report. Limit bounds each list, 1..MaxLimit; After begins the list of section Only behind a page's end.
type Job struct {
	Look      health.Namespace
	Namespace string
	Only      Section
	After     string
	Limit     int
	Scale     int32 // of the namespace
}

// Run reads the report.
func (j *Job) Run(ctx context.Context) (*Report, error) {
	place, err := parsePlace(j.Only, j.After)
	if err != nil {
		return nil, err
	}
	r := &Report{Schema: 1, Namespace: j.Namespace, Scale: j.Scale, Rejected: Rejected{Codes: []Code{}, Records: []Record{}}, Current: []Problem{}, Superseded: []Conflict{}}
	err = j.Look.Look(ctx, func(s *reader.Snapshot) error {
		one := &reading{Snapshot: s, ctx: ctx, report: r, limit: j.Limit}
		return one.run(j.Only, place)
	})
	if err != nil {
		return nil, fmt.Errorf("diagnose %s: %w", j.Namespace, err)
	}
	return r, nil
}

// reading fills in a report; it lives inside one call.
type reading struct {
	*reader.Snapshot
	ctx    context.Context
	report *Report
	limit  int
}

func (r *reading) run(only Section, after reader.Place) error {
	moment, err := r.Moment(r.ctx)
	if err != nil {
		return err
	}
	r.report.At = moment.Now.UTC()
	if err := r.totals(); err != nil {
		return err
	}
	for _, section := range []struct {
		read func(reader.Place) error
		name Section
	}{{r.rejected, Rejections}, {r.current, Current}, {r.superseded, Superseded}} {
		if only != All && only != section.name {
			continue
		}
		if err := section.read(after); err != nil {
			return err
		}
	}
	return nil
}

// totals counts what there is.
func (r *reading) totals() error {
	codes, err := r.CountRejected(r.ctx)
	if err != nil {
		return err
	}
	for code := ledger.TooLarge; code <= ledger.Routing; code++ {
		if n := codes[code]; n > 0 {
			r.report.Rejected.Codes = append(r.report.Rejected.Codes, Code{Code: code.String(), Records: n})
			r.report.Rejected.Total += n
		}
	}
	blocked, err := r.CountBlocked(r.ctx)
	if err != nil {
		return err
	}
	for _, n := range blocked {
		r.report.BlockedKeys += n
	}
	r.report.ConflictRecords, err = r.CountConflicting(r.ctx)
	return err
}

func (r *reading) rejected(after reader.Place) error {
	found, err := r.RejectedRecords(r.ctx, after.Partition, after.Offset, r.limit+1)
	if err != nil {
		return err
	}
	page, more := cut(found, r.limit)
	for _, one := range page {
		r.report.Rejected.Records = append(r.report.Rejected.Records, record(one))
	}
	if more {
		last := page[len(page)-1]
		r.report.Rejected.Next = fmt.Sprintf("%d/%d", last.Partition, last.Offset)
	}
	return nil
}

// cut returns a page of at most limit entries of what was found, which was asked for one more, and whether there is another page.
func cut[T any](found []T, limit int) (page []T, more bool) {
	return found[:min(len(found), limit)], len(found) > limit
}

func record(r reader.Rejected) Record {
	out := Record{Evidence: r.Evidence, Code: r.Code, Offset: r.Offset, Partition: r.Partition}
	if !r.Decided.IsZero() {
		decided := r.Decided.UTC()
		out.Decided = &decided
		if r.BrokerMS >= 0 {
			at := time.UnixMilli(r.BrokerMS).UTC()
			out.Broker = &at
		}
	}
	return out
}

// parsePlace reads where a page of a section ended: partition/offset, partition/number or partition/key/offset.
func parsePlace(section Section, text string) (reader.Place, error) {
	p := reader.Place{Partition: -1}
	if text == "" {
		return p, nil
	}
	wanted := map[Section]int{Rejections: 2, Current: 2, Superseded: 3}[section]
	var n [3]int64
	parts := strings.Split(text, "/")
	bad := len(parts) != wanted
	for i := range min(len(parts), len(n)) {
		v, err := strconv.ParseInt(parts[i], 10, 64)
		bad = bad || err != nil || v < 0
		n[i] = v
	}
	if bad || n[0] >= ledger.MaxPartitions {
		return p, fmt.Errorf("%q: %w", text, ErrPlace)
	}
	p.Partition = ledger.Partition(n[0])
	if section == Superseded {
		p.KeyID, p.Offset = ledger.KeyID(n[1]), ledger.Offset(n[2])
	} else {
		p.Offset = ledger.Offset(n[1])
	}
	return p, nil
}
