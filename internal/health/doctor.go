package health

import (
	"errors"
	"fmt"
	"time"

	"amends/internal/broker"
	"amends/internal/manifest"
	"amends/internal/phrase"
	"amends/internal/store"
	"amends/internal/store/postgres/checkup"
)

// Level says how a check ended.
type Level string

// The levels. Unknown is what could not be looked at, because something else is missing or nobody tells; it is no failure itself.
const (
	Fine    Level = "ok"
	Warning Level = "warning"
	Failure Level = "failure"
	Unknown Level = "unknown"
)

// Check is one line of doctor: what was looked at, what was found, why it matters and what to do. Why and Fix are "" when fine.
type Check struct {
	Area  string `json:"area"` // manifest, broker, database, schema, machine
	Name  string `json:"name"` // stable
	Level Level  `json:"level"`
	Found string `json:"found"`
	Why   string `json:"why,omitempty"`
	Fix   string `json:"fix,omitempty"`
}

// Doctor is the answer: nothing fails, or what would.
type Doctor struct {
	Schema    int     `json:"schema"`
	Namespace string  `json:"namespace,omitempty"`
	Failures  int     `json:"failures"`
	Warnings  int     `json:"warnings"`
	Unknown   int     `json:"unknown"`
	Checks    []Check `json:"checks"`
}

// Facts are what could be found out, each with why it could not.
type Facts struct {
	Now           time.Time
	Manifest      *manifest.Manifest
	ManifestError error

	Brokers     []Dialed
	BrokerError error // no metadata was had
	Source      TopicFacts
	Output      TopicFacts
	Newest      time.Time // timestamp of the newest source record, zero where there is none or it could not be read

	Server        *checkup.Server
	ServerError   error
	Migrations    []store.Migration
	SchemaError   error // the migrations could not be read
	Opened        error // why the namespace could not be opened, with its configuration
	Binding       error // why its binding is not the manifest's
	Progress      *Progress
	ProgressError error

	Disk      *Disk
	DiskError error
}

// Dialed is an address of a broker and whether something answers there.
type Dialed struct {
	Address string
	Err     error
}

// TopicFacts are what a broker says of a topic.
type TopicFacts struct {
	Err       error
	LayoutErr error
	Topic     broker.Topic
	Layout    broker.Layout
}

// Disk is the file system that holds the embedded stack's data.
type Disk struct {
	Path  string
	Free  uint64
	Total uint64
}

// Examine judges the facts. It asks nobody.
func Examine(f *Facts) *Doctor {
	e := &examination{Facts: f, Doctor: &Doctor{Schema: 1}}
	e.manifest()
	e.brokers()
	e.database()
	e.schema()
	e.machine()
	for _, c := range e.Checks {
		switch c.Level {
		case Failure:
			e.Failures++
		case Warning:
			e.Warnings++
		case Unknown:
			e.Doctor.Unknown++
		}
	}
	return e.Doctor
}

// examination writes the checks; it lives inside one call.
type examination struct {
	*Facts
	*Doctor
	area string
}

func (e *examination) add(level Level, name, found, why, fix string) {
	e.Checks = append(e.Checks, Check{Area: e.area, Name: name, Level: level, Found: found, Why: why, Fix: fix})
}

func (e *examination) fine(name, format string, args ...any) {
	e.add(Fine, name, fmt.Sprintf(format, args...), "", "")
}

func (e *examination) skip(name, found string) { e.add(Unknown, name, found, "", "") }

// when is fine unless it holds.
func (e *examination) when(bad bool, level Level, name, found, why, fix string) {
	if !bad {
		level, why, fix = Fine, "", ""
	}
	e.add(level, name, found, why, fix)
}

func (e *examination) manifest() {
	e.area = "manifest"
	m := e.Manifest
	if m == nil {
		e.add(Failure, "manifest", sentence(e.ManifestError), "nothing can run without the manifest", "name it with -manifest FILE or AMENDS_MANIFEST; source create writes one")
		return
	}
	e.Namespace = m.Config.Namespace
	digest := m.Config.Digest()
	open := "listed keys only"
	if m.Config.OpenKeys != nil {
		open = "open keys"
	}
	e.fine("manifest", "namespace %s, %s, %s listed, %s, digest %x", m.Config.Namespace, phrase.Counted(int(m.Config.Partitions), "partition"),
		phrase.Counted(len(m.Config.StockKeys), "key"), open, digest[:6])
	if m.Output == nil {
		e.add(Warning, "output", "no output topic", "relay, view and verify refuse an unbound manifest; outputs stay pending", "bind one: output create -manifest FILE -topic TOPIC")
		return
	}
	e.fine("output", "bound to %s", m.Output.Topic)
}

// machine looks at clocks and disks.
func (e *examination) machine() {
	e.area = "machine"
	if s := e.Server; s == nil {
		e.skip("clock", "not compared with the database's: it does not answer")
	} else {
		const most = time.Second
		off := s.Skew.Abs() > most+s.Trip
		e.when(off, Warning, "clock", fmt.Sprintf("the database's clock is %v %s this machine's, known within %v", s.Skew.Abs().Round(time.Millisecond), yes(s.Skew < 0, "behind", "ahead of"), s.Trip.Round(time.Microsecond)),
			"lags in seconds compare times of both", "keep both machines' clocks right by NTP")
	}
	switch {
	case e.Newest.IsZero():
		e.skip("broker clock", "Kafka tells no clock of its own, and no source record's timestamp could be read")
	default:
		early := e.Newest.Sub(e.Now)
		e.when(early > 5*time.Second, Warning, "broker clock", fmt.Sprintf("the newest source record says %s; Kafka tells no clock of its own", e.Newest.UTC().Format(time.RFC3339)),
			fmt.Sprintf("a record from %v in the future: the lag in seconds is wrong, and nothing else", early.Round(time.Second)), "keep the clocks of producers and brokers right by NTP")
	}
	e.disk()
}

// disk is known of the embedded stack alone.
func (e *examination) disk() {
	const little, least = 5 << 30, 512 << 20
	size := "of unknown size"
	if e.Server != nil {
		size = bytes(e.Server.Bytes)
	}
	switch d := e.Disk; {
	case e.DiskError != nil:
		e.skip("disk", sentence(e.DiskError))
	case d == nil:
		e.skip("disk", "PostgreSQL and Kafka tell no free space; the database is "+size+", watch the disks at the servers")
	case d.Free < least:
		e.add(Failure, "disk", bytes(int64(d.Free))+" free at "+d.Path, "a full disk stops every commit", "make room")
	default:
		e.when(d.Free < little, Warning, "disk", fmt.Sprintf("%s of %s free at %s, the database is %s", bytes(int64(d.Free)), bytes(int64(d.Total)), d.Path, size),
			"a full disk stops every commit", "make room before it is")
	}
}

// bytes writes a size for people.
func bytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d bytes", n)
	}
	v, names := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB"}
	i := 0
	for v >= unit && i < len(names)-1 {
		v, i = v/unit, i+1
	}
	return fmt.Sprintf("%.1f %s", v, names[i])
}

// sentence is an error's text on one line, or that there is none.
func sentence(err error) string {
	if err == nil {
		return "not looked at"
	}
	return phrase.OneLine(err.Error())
}

// refused reports whether a broker answered and would not serve.
func refused(err error) bool { return errors.Is(err, broker.ErrRefused) }
