package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// HeldError says that another process holds the data. Ending that process, or using its endpoints, is the way on.
type HeldError struct {
	Dir    string
	Holder Holder
}

func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("hold %s: another process holds it", e.Dir)
	}
	return fmt.Sprintf("hold %s: process %d (%s) has held it since %s; stop it (kill %d) or use another -dir",
		e.Dir, e.Holder.PID, e.Holder.Command, e.Holder.Since.Format(time.RFC3339), e.Holder.PID)
}

// ErrPort: a number that was asked for is not that of a port.
var ErrPort = errors.New("not a port; give 1 to 65535, or 0 for any")

// PortError says that an address that was asked for is taken.
type PortError struct {
	Flag string // the flag that names another one, empty where there is none
	Port int    // 1..65535
}

func (e *PortError) Error() string {
	text := fmt.Sprintf("listen on 127.0.0.1:%d: the port is in use; free it", e.Port)
	if e.Flag != "" {
		text += " or choose another with " + e.Flag
	}
	return text
}

// SpaceError says that a volume is full. Nothing that was acknowledged is lost.
type SpaceError struct {
	Dir  string
	Free uint64 // bytes
	Need uint64 // bytes
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("use %s: %d MB free on its volume, %d MB needed; free some space or use another -dir",
		e.Dir, e.Free>>20, e.Need>>20)
}

// MinSpaceBytes is what a new stack needs to begin with: an empty cluster with its first WAL files.
const MinSpaceBytes = 150 << 20

// CheckSpace fails when the volume of dir has less than need bytes for this user. A volume that does not tell passes.
func CheckSpace(dir string, need uint64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return nil
	}
	if free := uint64(st.Bavail) * uint64(st.Bsize); free < need {
		return &SpaceError{Dir: dir, Free: free, Need: need}
	}
	return nil
}

// portSpan is how many ports after the first one are tried.
const portSpan = 200

// ChoosePort returns want when it is free and, unless fixed, the first free one after it.
func ChoosePort(want int, fixed bool, flag string) (int, error) {
	for port := want; port < want+portSpan && port <= 65535; port++ {
		free, err := portFree(port)
		if err != nil {
			return 0, err
		}
		if free {
			return port, nil
		}
		if fixed {
			return 0, &PortError{Port: port, Flag: flag}
		}
	}
	return 0, fmt.Errorf("find port: none of %d ports from %d is free on 127.0.0.1; name one with %s", portSpan, want, flag)
}

// CheckPort refuses a number that no port has; 0 is for any. flag is what gave it.
func CheckPort(port int, flag string) error {
	if port < 0 || port > 65535 {
		return fmt.Errorf("%s %d: %w", flag, port, ErrPort)
	}
	return nil
}

// RememberedPort is the port in a file, or the other one.
func RememberedPort(file string, otherwise int) int {
	raw, err := os.ReadFile(file)
	if err != nil {
		return otherwise
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || port < 1 || port > 65535 {
		return otherwise
	}
	return port
}

func portFree(port int) (bool, error) {
	l, err := net.Listen("tcp", Address(port))
	if err == nil {
		return true, l.Close()
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return false, nil
	}
	return false, fmt.Errorf("try port %d: %w", port, err)
}

// KernelPort is a port that was free a moment ago.
func KernelPort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// Address is host and port on loopback.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// MissingError says that a program that a part needs is not on this machine.
type MissingError struct {
	What string // the program
	How  string // how to have it
}

func (e *MissingError) Error() string { return "find " + e.What + ": not found; to have it: " + e.How }
