//go:build !linux

package process

import (
	"os/exec"
	"strconv"
	"syscall"
)

// bindDeath has nothing to do here: no parent-death signal exists.
func bindDeath(*exec.Cmd, syscall.Signal) {}

// watchDeath starts a shell that reads a pipe of this process: the pipe ends with the process, however it dies, and
// the shell then signals the child. The returned function ends the watch.
func watchDeath(pid int, onDeath syscall.Signal) func() {
	watch := exec.Command("/bin/sh", "-c", `cat >/dev/null; kill -"$1" "$2" 2>/dev/null`, "amends-watch",
		strconv.Itoa(int(onDeath)), strconv.Itoa(pid))
	watch.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := watch.StdinPipe()
	if err != nil {
		return func() {}
	}
	if err := watch.Start(); err != nil {
		return func() {}
	}
	return func() {
		_ = watch.Process.Kill() // before the pipe ends: the child's number may be another process's by now
		_ = in.Close()
		_ = watch.Wait()
	}
}
