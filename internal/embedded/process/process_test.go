package process_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"amends/internal/embedded/process"
)

func TestLockHasOneHolderAndTellsWho(t *testing.T) {
	dir := t.TempDir()
	hold, err := process.Acquire(dir, "lock")
	if err != nil {
		t.Fatal(err)
	}
	_, err = process.Acquire(dir, "lock")
	var held *process.HeldError
	if !errors.As(err, &held) || held.Holder.PID != os.Getpid() || held.Holder.Since.IsZero() || !strings.Contains(err.Error(), dir) {
		t.Errorf("second holder: %v", err)
	}
	if err := hold.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := process.Acquire(dir, "lock")
	if err != nil {
		t.Fatalf("after a release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

func TestWriteFileReplacesWholeFilesPrivately(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, content := range []string{"one", "two, and longer", ""} {
		if err := process.WriteFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("%q %v, want %q", got, err, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); left != nil {
		t.Errorf("left over: %v", left)
	}
}

func TestPortInUseIsNamedOrPassedOver(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	_, err = process.ChoosePort(port, true, "-some-port")
	var busy *process.PortError
	if !errors.As(err, &busy) || busy.Port != port || !strings.Contains(err.Error(), "-some-port") {
		t.Errorf("fixed port: %v", err)
	}
	if next, err := process.ChoosePort(port, false, "-some-port"); err == nil && next <= port {
		t.Errorf("next port %d after %d", next, port)
	}
}

func TestFullVolumeIsSaid(t *testing.T) {
	err := process.CheckSpace(t.TempDir(), 1<<62)
	var full *process.SpaceError
	if !errors.As(err, &full) || full.Need != 1<<62 || !strings.Contains(err.Error(), "-dir") {
		t.Errorf("no volume has that much: %v", err)
	}
	if err := process.CheckSpace(t.TempDir(), 1); err != nil {
		t.Error(err)
	}
}

func TestChildIsStoppedThenKilled(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"obeys", "exec sleep 60"}, {"ignores the signal", `trap "" TERM; while :; do sleep 0.05; done`},
	} {
		t.Run(c.name, func(t *testing.T) {
			child, err := process.Start(exec.Command("/bin/sh", "-c", c.script), syscall.SIGKILL)
			if err != nil {
				t.Fatal(err)
			}
			if !child.Alive() {
				t.Fatal("it ended by itself")
			}
			time.Sleep(100 * time.Millisecond) // the shell sets its trap
			if err := child.Stop(syscall.SIGTERM, 300*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if child.Alive() || child.Err() == nil {
				t.Errorf("alive %v, ended with %v", child.Alive(), child.Err())
			}
		})
	}
	if _, err := process.Start(exec.Command("/nonexistent"), syscall.SIGKILL); err == nil {
		t.Error("a program that does not exist was started")
	}
	out, err := process.Output(exec.Command("/bin/sh", "-c", "echo said; exit 3"))
	if err == nil || string(out) != "said\n" {
		t.Errorf("%q %v", out, err)
	}
}
