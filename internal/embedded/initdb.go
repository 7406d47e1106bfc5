package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"amends/internal/embedded/process"
)

const (
	dataName     = "pgdata"
	passwordName = "password"
	portName     = "port"
	logName      = "postgres.log"
	newDataName  = "pgdata.new-" // and a random end: a cluster that is not whole yet
	superuser    = "amends"
)

// ensureCluster makes the cluster in dir unless it is there: under a temporary name, renamed when whole, so that an
// interrupted initdb leaves nothing that could be taken for data. The caller holds the lock of dir.
func ensureCluster(ctx context.Context, bins Binaries, as runAs, dir string, o *PostgresOptions) error {
	data := filepath.Join(dir, dataName)
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err == nil {
		return nil
	}
	if err := removeUnfinished(dir); err != nil {
		return err
	}
	if o.TemplateDir != "" {
		return copyCluster(as, o.TemplateDir, dir)
	}
	if err := process.CheckSpace(dir, process.MinSpaceBytes); err != nil {
		return err
	}
	password := o.Password
	if password == "" {
		password = rand.Text()
	}
	if err := process.WriteFile(filepath.Join(dir, passwordName), []byte(password+"\n")); err != nil {
		return err
	}
	if err := as.own(dir); err != nil { // initdb reads the password and writes beside it
		return err
	}
	temp := filepath.Join(dir, newDataName+rand.Text()[:8])
	if err := runInitdb(ctx, bins, as, dir, temp, o.template); err != nil {
		os.RemoveAll(temp)
		return err
	}
	if err := os.Rename(temp, data); err != nil {
		return fmt.Errorf("keep cluster: %w", err)
	}
	return process.SyncDir(dir)
}

// removeUnfinished removes what an interrupted initdb left under a temporary name of ours. A child of that initdb may
// still be writing for a moment.
func removeUnfinished(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, newDataName+"*"))
	if err != nil {
		return fmt.Errorf("look for unfinished cluster: %w", err)
	}
	for _, l := range left {
		err := os.RemoveAll(l)
		for deadline := time.Now().Add(lingerTimeout); err != nil && time.Now().Before(deadline); {
			time.Sleep(readyPollPeriod)
			err = os.RemoveAll(l)
		}
		if err != nil {
			return fmt.Errorf("remove unfinished cluster: %w", err)
		}
	}
	return nil
}

// locales lists initdb's options for a collation that compares code points, the best first.
func locales(major int) [][]string {
	plain := [][]string{{"--locale=C.UTF-8"}, {"--locale=C"}}
	if major < 17 {
		return plain
	}
	return append([][]string{{"--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"}}, plain...)
}

func runInitdb(ctx context.Context, bins Binaries, as runAs, dir, temp string, noSync bool) error {
	var last error
	for _, locale := range locales(bins.Major) {
		args := append([]string{"-D", temp, "-U", superuser, "--encoding=UTF8", "--auth=scram-sha-256",
			"--pwfile=" + filepath.Join(dir, passwordName), "--data-checksums"}, locale...)
		if noSync {
			args = append(args, "--no-sync")
		}
		cmd := exec.CommandContext(ctx, bins.program("initdb"), args...)
		cmd.Dir, cmd.Env = "/", serverEnv()
		as.apply(cmd)
		out, err := process.Output(cmd)
		if err == nil {
			return nil
		}
		if strings.Contains(string(out), "No space left on device") {
			return fmt.Errorf("run initdb: %w", &process.SpaceError{Dir: dir, Need: process.MinSpaceBytes})
		}
		last = fmt.Errorf("run initdb in %s: %w: %s", dir, err, process.LastLines(string(out), 6))
		if ctx.Err() != nil || !strings.Contains(string(out), "locale") {
			return last
		}
	}
	return last
}

// serverEnv is this process's environment without what would change the server: its own variables and the language.
func serverEnv() []string {
	env := []string{"LC_ALL=C"}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") && !strings.HasPrefix(v, "LC_") && !strings.HasPrefix(v, "LANG") {
			env = append(env, v)
		}
	}
	return env
}

// copyCluster copies a stopped cluster and its password from another directory of this layout.
func copyCluster(as runAs, from, dir string) error {
	temp := filepath.Join(dir, newDataName+rand.Text()[:8])
	if err := os.CopyFS(temp, os.DirFS(filepath.Join(from, dataName))); err != nil {
		return fmt.Errorf("copy cluster: %w", err)
	}
	err := filepath.WalkDir(temp, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o700) // the server refuses wider modes
	})
	if err != nil {
		return fmt.Errorf("copy cluster: %w", err)
	}
	password, err := os.ReadFile(filepath.Join(from, passwordName))
	if err != nil {
		return fmt.Errorf("copy cluster: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, passwordName), password, 0o600); err != nil {
		return fmt.Errorf("copy cluster: %w", err)
	}
	if err := os.Rename(temp, filepath.Join(dir, dataName)); err != nil {
		return fmt.Errorf("copy cluster: %w", err)
	}
	return as.own(dir)
}

// dataMajor is the major version of an existing cluster, 0 when there is none.
func dataMajor(dir string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(dir, dataName, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read version of data: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0, fmt.Errorf("read version of data: %w", err)
	}
	return major, nil
}

// MakeCluster makes a cluster in dir that PostgresOptions.TemplateDir can name, without syncing it to the disk.
func MakeCluster(ctx context.Context, bins Binaries, dir string) error {
	as, err := chooseRunAs(ctx, bins.program("postgres"), filepath.Join(dir, dataName), true)
	if err != nil {
		return err
	}
	return ensureCluster(ctx, bins, as, dir, &PostgresOptions{template: true})
}
