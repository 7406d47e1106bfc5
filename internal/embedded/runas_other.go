//go:build !linux

package embedded

import "syscall"

// namespaceAttr falls back to the other uid: user namespaces are Linux's.
func namespaceAttr(uid, gid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
