package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"amends/internal/embedded/process"
)

// mark is the content of the file that makes a directory this package's own.
type mark struct {
	Made   time.Time `json:"made"`
	Schema int       `json:"schema"`
}

// stackParts are the names in a stack's directory that hold data; a reset removes these and nothing else.
func stackParts() []string { return []string{"postgresql", "broker", filesName, endpointsName} }

// DefaultDir is the stack's directory under the user's data home. Root without user namespaces has PostgreSQL run
// under another uid, which cannot reach root's home: its stack lives under /var/lib.
func DefaultDir() (string, error) {
	if home := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, "amends", "stack"), nil
	}
	if os.Geteuid() == 0 && !namespacesWork() {
		return "/var/lib/amends/stack", nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find home directory: %w (name a directory with -dir)", err)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "amends", "stack"), nil
	}
	return filepath.Join(home, ".local", "share", "amends", "stack"), nil
}

func namespacesWork() bool {
	uid, gid, err := unprivileged()
	if err != nil || runtime.GOOS != "linux" {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "exit 0")
	runAs{uid: uid, gid: gid, namespace: true}.apply(cmd)
	return cmd.Run() == nil
}

func stackDir(dir string) (string, error) {
	if dir == "" {
		return DefaultDir()
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve directory: %w", err)
	}
	return abs, nil
}

// claimDir makes dir, or takes an empty one, and marks it; a directory with foreign content is refused. Others may
// pass through it, never list it: PostgreSQL may run under another uid. What is in it is the owner's alone.
func claimDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make directory: %w", err)
	}
	marked, err := isMarked(dir)
	if marked || err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "."+markName) { // another process may be marking it right now
			return fmt.Errorf("use %s: it holds files that amends did not make; choose another -dir", dir)
		}
	}
	raw, err := json.Marshal(mark{Schema: stackSchema, Made: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return fmt.Errorf("mark directory: %w", err)
	}
	return process.WriteFile(filepath.Join(dir, markName), append(raw, '\n'))
}

func isMarked(dir string) (bool, error) {
	raw, err := os.ReadFile(filepath.Join(dir, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read mark: %w", err)
	}
	var m mark
	if err := json.Unmarshal(raw, &m); err != nil || m.Schema != stackSchema {
		return false, fmt.Errorf("use %s: %s is not of this version of amends; choose another -dir", dir, markName)
	}
	return true, nil
}

// Reset removes a stack's data from dir (default: DefaultDir), so that the next start begins anew. It touches only a directory
// that this package made, and in it only its own parts. *HeldError while a process holds it. A directory that does not exist is
// no error.
func Reset(dir string) error {
	dir, err := stackDir(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	marked, err := isMarked(dir)
	if err != nil {
		return err
	}
	if !marked {
		return fmt.Errorf("reset %s: amends did not make this directory; remove it yourself or choose another -dir", dir)
	}
	hold, err := process.Acquire(dir, "lock")
	if err != nil {
		return err
	}
	return errors.Join(takeOut(dir), removeTaken(dir), hold.Release())
}

// takeOut renames every part of the data, so that a reset that is cut off leaves no half of it in use.
func takeOut(dir string) error {
	taken, err := os.MkdirTemp(dir, removedName)
	if err != nil {
		return fmt.Errorf("take data out: %w", err)
	}
	parts := stackParts()
	slices.Reverse(parts) // the endpoints first: they promise the rest
	for _, part := range parts {
		err := os.Rename(filepath.Join(dir, part), filepath.Join(taken, part))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take data out: %w", err)
		}
	}
	return nil
}

// removeTaken deletes what resets have taken out of use. The caller holds the lock.
func removeTaken(dir string) error {
	taken, err := filepath.Glob(filepath.Join(dir, removedName+"*"))
	if err != nil {
		return fmt.Errorf("look for removed data: %w", err)
	}
	for _, t := range taken {
		if err := os.RemoveAll(t); err != nil {
			return fmt.Errorf("remove data: %w", err)
		}
	}
	return nil
}

func hostOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("parse endpoints: the database's address is not one") // the cause would show the password
	}
	return u.Host, nil
}
