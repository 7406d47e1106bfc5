package intake

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"amends/internal/manifest"
)

// ErrComplete: the progress file says that exactly this was published in full.
var ErrComplete = errors.New("this file was imported in full before")

// saveEvery bounds how often a journal is written; what is published between a write and a crash is published again,
// which is DUPLICATE evidence.
const saveEvery = time.Second

// Journal is the progress file of an import. It says of exactly one content of file, mapping and source how far it was
// published.
type Journal struct {
	now   func() time.Time
	path  string
	entry entry
	saved time.Time
}

// entry is what the file holds.
type entry struct {
	File         string `json:"file_sha256"`
	Mapping      string `json:"mapping_sha256"`
	Source       string `json:"source_incarnation"`
	Config       string `json:"config_sha256"`
	Acknowledged int64  `json:"acknowledged_line"`
	Schema       int    `json:"schema"`
	Complete     bool   `json:"complete"`
}

// OpenJournal names the progress file; nothing is read or written yet.
func OpenJournal(path string) *Journal { return &Journal{path: path, now: time.Now} }

// Begin returns the line after which an import of what was surveyed goes on, 0 for the beginning, and makes sure that
// the progress file can be written. It fails with ErrComplete where nothing is left to do, and with *Refused where the
// progress file belongs to an unfinished import of something else. Anew forgets what the file says.
func (j *Journal) Begin(f *File, anew bool) (after int64, err error) {
	want := entry{Schema: 1, File: f.survey.Digest, Mapping: f.mapped, Source: f.Manifest.Config.SourceIncarnation, Config: digest(f.Manifest.Config)}
	before, err := j.read()
	if err != nil {
		return 0, err
	}
	switch {
	case anew || before == nil:
	case before.same(want) && before.Complete:
		return 0, ErrComplete
	case before.same(want):
		want.Acknowledged = before.Acknowledged
	case !before.Complete:
		return 0, &Refused{fmt.Sprintf("%s is of an unfinished import of other content (%s); begin anew with -restart, or remove it", j.path, before.differs(want))}
	}
	j.entry = want
	return want.Acknowledged, j.save()
}

// Acknowledged says that every line up to line is published.
func (j *Journal) Acknowledged(line int64) error {
	j.entry.Acknowledged = line
	if j.now().Sub(j.saved) < saveEvery {
		return nil
	}
	return j.save()
}

// End writes how far the import came, complete or not.
func (j *Journal) End(complete bool) error {
	j.entry.Complete = complete
	return j.save()
}

// Line returns the last acknowledged line.
func (j *Journal) Line() int64 { return j.entry.Acknowledged }

func (e *entry) same(want entry) bool { return e.differs(want) == "" }

// differs names the first part that differs.
func (e *entry) differs(want entry) string {
	switch {
	case e.File != want.File:
		return "the file has changed"
	case e.Mapping != want.Mapping:
		return "the mapping has changed"
	case e.Source != want.Source:
		return "the source topic is another"
	case e.Config != want.Config:
		return "the namespace's configuration is another"
	}
	return ""
}

// read returns what the file holds, nil where there is none.
func (j *Journal) read() (*entry, error) {
	raw, err := os.ReadFile(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Refused{fmt.Sprintf("read progress file: %v", err)}
	}
	var e entry
	if err := json.Unmarshal(raw, &e); err != nil || e.Schema != 1 || e.Acknowledged < 0 {
		return nil, &Refused{j.path + " is no progress file of an import; name another one with -progress-file"}
	}
	return &e, nil
}

// save replaces the file: a crash leaves the old or the new one.
func (j *Journal) save() error {
	raw, err := json.Marshal(j.entry)
	if err != nil {
		return fmt.Errorf("write progress file: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(j.path), filepath.Base(j.path)+".*.new")
	if err != nil {
		return &Refused{fmt.Sprintf("write progress file: %v; name another one with -progress-file", err)}
	}
	_, err = f.Write(append(raw, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), j.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write progress file: %w", err)
	}
	j.saved = j.now()
	return nil
}

func digest(c *manifest.Config) string {
	d := c.Digest()
	return hex.EncodeToString(d[:])
}
