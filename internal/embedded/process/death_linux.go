package process

import (
	"os/exec"
	"syscall"
)

// bindDeath asks the kernel to signal the child when the forking thread ends.
func bindDeath(cmd *exec.Cmd, onDeath syscall.Signal) { cmd.SysProcAttr.Pdeathsig = onDeath }

// watchDeath has nothing to do here: the kernel watches.
func watchDeath(int, syscall.Signal) func() { return func() {} }
