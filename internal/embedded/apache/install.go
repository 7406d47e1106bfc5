package apache

import (
	"context"
	"crypto/rand"
	_ "embed" // the list of Kafka's libraries
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"amends/internal/embedded/process"
)

//go:embed pom.xml
var libraries []byte

// oldestJava is the first Java that Kafka 4 runs on.
const oldestJava = 17

// install is Apache Kafka in the cache: its libraries, a formatted log directory to copy, and an archive of loaded
// classes that halves the time of a start.
type install struct {
	java string
	dir  string
}

// findPrograms finds Kafka in the cache or brings it there. A lock lets processes that start at the same time share
// one download.
func findPrograms(ctx context.Context, cache string, progress func(string)) (*install, error) {
	java, err := findJava(ctx)
	if err != nil {
		return nil, err
	}
	if cache == "" {
		if cache, err = process.UserCache(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, fmt.Errorf("make cache directory: %w", err)
	}
	in := &install{java: java, dir: filepath.Join(cache, "kafka-"+Version)}
	if in.complete() {
		return in, nil
	}
	hold, err := process.WaitLock(ctx, cache, "kafka.lock")
	if err != nil {
		return nil, err
	}
	err = in.complement(ctx, progress)
	if err := errors.Join(err, hold.Release()); err != nil {
		return nil, err
	}
	return in, nil
}

func (in *install) jars() string     { return filepath.Join(in.dir, "jars") }
func (in *install) template() string { return filepath.Join(in.dir, "formatted") }

// archive is the class archive's path, one a Java: another Java's is of no use.
func (in *install) archive() string {
	return filepath.Join(in.dir, "classes-"+strconv.FormatUint(fileStamp(in.java), 36)+".jsa")
}

// fileStamp tells one version of a program from another.
func fileStamp(path string) uint64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return uint64(info.ModTime().Unix())
}

func (in *install) complete() bool {
	for _, path := range []string{in.jars(), in.template(), in.archive()} {
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	return true
}

// complement adds what is not there yet, each part under a temporary name first.
func (in *install) complement(ctx context.Context, progress func(string)) error {
	if err := os.MkdirAll(in.dir, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	steps := []struct {
		path string
		make func(ctx context.Context, temp string) error
	}{{in.jars(), in.fetch}, {in.template(), in.format}, {in.archive(), in.train}}
	for _, step := range steps {
		if _, err := os.Stat(step.path); err == nil {
			continue
		}
		process.Tell(progress, "preparing Apache Kafka "+Version+" ("+filepath.Base(step.path)+", once)")
		temp, err := os.MkdirTemp(in.dir, "making-")
		if err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
		result := filepath.Join(temp, filepath.Base(step.path))
		err = step.make(ctx, result)
		if err == nil {
			err = os.Rename(result, step.path)
		}
		if err := errors.Join(err, os.RemoveAll(temp)); err != nil {
			return err
		}
	}
	return nil
}

// fetch brings the libraries through Maven.
func (in *install) fetch(ctx context.Context, jars string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return &process.MissingError{What: "Maven (mvn), which brings Apache Kafka", How: "apt-get install maven   (or: brew install maven)"}
	}
	pom := filepath.Join(filepath.Dir(jars), "pom.xml")
	if err := os.WriteFile(pom, libraries, 0o600); err != nil {
		return fmt.Errorf("write pom: %w", err)
	}
	cmd := exec.CommandContext(ctx, mvn, "-q", "-B", "-f", pom, "dependency:copy-dependencies", "-DincludeScope=runtime",
		"-DoutputDirectory="+jars)
	out, err := process.Output(cmd)
	if err != nil {
		return fmt.Errorf("fetch Apache Kafka with Maven: %w: %s", err, process.LastLines(string(out), 5))
	}
	return nil
}

// format makes a log directory without identity: a copy gets its own.
func (in *install) format(ctx context.Context, logs string) error {
	k := &Kafka{dir: filepath.Dir(logs), port: 1, controller: 2}
	if err := k.writeConfiguration(); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, in.java, in.arguments(filepath.Join(k.dir, "log4j2.xml"), nil, "kafka.tools.StorageTool",
		"format", "-t", newID(), "-c", filepath.Join(k.dir, "server.properties"))...)
	if out, err := process.Output(cmd); err != nil {
		return fmt.Errorf("format Kafka's log directory: %w: %s", err, process.LastLines(string(out), 5))
	}
	return os.Rename(k.logs(), logs)
}

// train runs a broker once and lets Java keep the classes it loaded.
func (in *install) train(ctx context.Context, archive string) error {
	k := &Kafka{dir: filepath.Dir(archive)}
	if err := in.ensureFormatted(k.logs()); err != nil {
		return err
	}
	if err := k.choosePorts(&Options{AnyPort: true}); err != nil {
		return err
	}
	cmd := exec.Command(in.java, in.arguments(filepath.Join(k.dir, "log4j2.xml"), []string{"-XX:ArchiveClassesAtExit=" + archive},
		"kafka.Kafka", filepath.Join(k.dir, "server.properties"))...)
	var err error
	if k.child, err = process.Start(cmd, syscall.SIGKILL); err != nil {
		return err
	}
	err = k.awaitReady(ctx)
	err = errors.Join(err, k.child.Stop(syscall.SIGTERM, 2*stopTimeout))
	if err != nil {
		return fmt.Errorf("archive Kafka's classes: %w", err)
	}
	if _, err := os.Stat(archive); err != nil { // this Java keeps none: an empty file says so
		return os.WriteFile(archive, nil, 0o600)
	}
	return nil
}

// archiveUse is Java's option to start from the archive.
func (in *install) archiveUse() []string {
	if info, err := os.Stat(in.archive()); err != nil || info.Size() == 0 {
		return nil
	}
	return []string{"-XX:SharedArchiveFile=" + in.archive(), "-Xshare:auto"}
}

// arguments are Java's. The star reaches Java as it is: no shell expands it.
func (in *install) arguments(logging string, options []string, main string, args ...string) []string {
	all := []string{"-Xmx768m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.configurationFile=" + logging}
	all = append(append(all, options...), "-cp", filepath.Join(in.jars(), "*"), main)
	return append(all, args...)
}

// ensureFormatted makes a log directory with a cluster id of its own unless there is one.
func (in *install) ensureFormatted(logs string) error {
	meta := filepath.Join(logs, "meta.properties")
	if _, err := os.Stat(meta); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for Kafka's logs: %w", err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(logs), "formatting-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(temp)
	if err := os.CopyFS(filepath.Join(temp, "logs"), os.DirFS(in.template())); err != nil {
		return fmt.Errorf("copy formatted log directory: %w", err)
	}
	identity := "version=1\nnode.id=1\ncluster.id=" + newID() + "\ndirectory.id=" + newID() + "\n"
	if err := os.WriteFile(filepath.Join(temp, "logs", "meta.properties"), []byte(identity), 0o600); err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	if err := os.Rename(filepath.Join(temp, "logs"), logs); err != nil {
		return fmt.Errorf("keep log directory: %w", err)
	}
	return nil
}

// newID is a random id as Kafka writes it: 16 bytes in URL-safe base64, never with a dash in front.
func newID() string {
	for {
		var id [16]byte
		_, _ = rand.Read(id[:]) // it never fails: the program would have ended
		if s := base64.RawURLEncoding.EncodeToString(id[:]); s[0] != '-' {
			return s
		}
	}
}

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// findJava looks in JAVA_HOME, then in PATH.
func findJava(ctx context.Context) (string, error) {
	missing := &process.MissingError{What: "Java " + strconv.Itoa(oldestJava) + " or newer", How: "apt-get install openjdk-17-jre-headless   (or: brew install openjdk)"}
	java := filepath.Join(os.Getenv("JAVA_HOME"), "bin", "java")
	if _, err := os.Stat(java); os.Getenv("JAVA_HOME") == "" || err != nil {
		if java, err = exec.LookPath("java"); err != nil {
			return "", missing
		}
	}
	out, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	if err != nil {
		return "", missing
	}
	found := javaVersion.FindSubmatch(out)
	if found == nil {
		return "", missing
	}
	if major, _ := strconv.Atoi(string(found[1])); major < oldestJava {
		missing.What += " (" + java + " is " + strings.TrimSpace(string(found[1])) + ")"
		return "", missing
	}
	return java, nil
}
