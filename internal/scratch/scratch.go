package scratch

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// remove waits for the end of its standard input, which is the end of the process that holds the other end of the
// pipe, and then removes the directory. What ran in it may need a moment to end.
const remove = `cat >/dev/null; for wait in 0.2 0.5 1 2 4 8; do sleep $wait; rm -rf -- "$1" 2>/dev/null && exit 0; done`

// Dir makes a directory under the system's temporary directory, its name beginning with prefix. It lasts as long as
// this process.
func Dir(prefix string) (string, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	cmd := exec.Command("/bin/sh", "-c", remove, "amends-scratch", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C ends this process, not its cleaner
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", fmt.Errorf("watch directory: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("watch directory: %w", err)
	}
	keep(in)
	return dir, nil
}
