package drill

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"amends/internal/absent"
)

// forwardEnv makes this test binary the inner half of a network: the addresses it listens on, each with the socket file that
// leads out, a=f pairs with commas.
const forwardEnv = "AMENDS_DRILL_FORWARD"

// forward runs the inner half in a network namespace of its own: it brings the loopback up and carries connections to the
// socket files. It ends with its parent.
func forward(spec string) int {
	if err := loopbackUp(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, pair := range strings.Split(spec, ",") {
		address, file, _ := strings.Cut(pair, "=")
		listen, err := net.Listen("tcp", address)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		go serve(listen, func() (net.Conn, error) { return net.Dial("unix", file) }, func(net.Conn) bool { return true }, func(int, bool) {})
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// loopbackUp sets the interface lo up: a new namespace has it down.
func loopbackUp() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var request struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "lo")
	request.flags = syscall.IFF_UP | syscall.IFF_RUNNING
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("set lo up: %w", errno)
	}
	return nil
}

// serve carries every connection of a listener to what dial reaches. admit sees both ends and may refuse; before each piece of
// data, which goes out or comes back, gate may hold it back.
func serve(listen net.Listener, dial func() (net.Conn, error), admit func(net.Conn) bool, gate func(bytes int, out bool)) {
	for {
		near, err := listen.Accept()
		if err != nil {
			return
		}
		go func() {
			defer near.Close()
			far, err := dial()
			if err != nil {
				return
			}
			defer far.Close()
			if !admit(near) || !admit(far) {
				return
			}
			ended := make(chan struct{}, 2)
			carry := func(to, from net.Conn, out bool) {
				buffer := make([]byte, 1<<14)
				for {
					n, err := from.Read(buffer)
					gate(n, out)
					if _, e := to.Write(buffer[:n]); e != nil || err != nil {
						break
					}
				}
				ended <- struct{}{}
			}
			go carry(near, far, false)
			go carry(far, near, true)
			<-ended
		}()
	}
}

// network is a network namespace whose processes reach the servers of a space only through it, at the same addresses.
type network struct {
	t       testing.TB
	inner   *exec.Cmd
	cond    *sync.Cond // guards what follows
	conns   map[net.Conn]bool
	silent  bool
	severed bool
}

// newNetwork makes a namespace with ways to the space's brokers and database. Where that is not allowed the test is absent.
func (s *space) newNetwork() *network {
	s.t.Helper()
	if _, err := exec.LookPath("nsenter"); err != nil {
		absent.Skip(s.t, "network", "nsenter", "install util-linux")
	}
	n := &network{t: s.t, cond: sync.NewCond(&sync.Mutex{}), conns: map[net.Conn]bool{}}
	dir, err := os.MkdirTemp("", "amends-net-") // a socket's path has to be short
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var pairs []string
	for i, address := range append([]string{s.sql.Config().ConnConfig.Host + ":" + fmt.Sprint(s.sql.Config().ConnConfig.Port)}, s.brokers...) {
		file := filepath.Join(dir, fmt.Sprint(i))
		listen, err := net.Listen("unix", file)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = listen.Close() })
		go serve(listen, func() (net.Conn, error) { return net.Dial("tcp", address) }, n.admit, n.gate)
		pairs = append(pairs, address+"="+file)
	}
	n.inner = exec.Command("/proc/self/exe")
	n.inner.Env = append(os.Environ(), forwardEnv+"="+strings.Join(pairs, ","))
	n.inner.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	hold, err := n.inner.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	said, err := n.inner.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := n.inner.Start(); err != nil {
		absent.Skip(s.t, "network", "a network namespace ("+err.Error()+")", "run the tests as root, or with CAP_SYS_ADMIN and CAP_NET_ADMIN")
	}
	s.t.Cleanup(func() {
		n.heal()
		_ = hold.Close()
		_ = n.inner.Wait()
	})
	word := make([]byte, 5)
	if _, err := io.ReadFull(said, word); err != nil {
		s.t.Fatalf("the namespace did not come up: %v", err)
	}
	return n
}

// enter is the wrapper of a command that runs in the namespace.
func (n *network) enter() []string {
	return []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", n.inner.Process.Pid), "--"}
}

func (n *network) admit(c net.Conn) bool {
	n.cond.L.Lock()
	defer n.cond.L.Unlock()
	if n.severed {
		return false
	}
	n.conns[c] = true
	return true
}

// gate holds data back while the network is silent.
func (n *network) gate(int, bool) {
	n.cond.L.Lock()
	defer n.cond.L.Unlock()
	for n.silent {
		n.cond.Wait()
	}
}

// silence swallows everything: connections stand and nothing arrives.
func (n *network) silence() { n.set(true, false) }

// sever ends every connection and admits none.
func (n *network) sever() { n.set(false, true) }

// heal carries again; what was swallowed arrives late.
func (n *network) heal() { n.set(false, false) }

func (n *network) set(silent, severed bool) {
	n.cond.L.Lock()
	defer n.cond.L.Unlock()
	n.silent, n.severed = silent, severed
	if severed {
		for c := range n.conns {
			_ = c.Close()
		}
		clear(n.conns)
	}
	n.cond.Broadcast()
}

// valve stands between a process and PostgreSQL and can stop what is sent after a number of bytes.
type valve struct {
	cond  *sync.Cond // guards what follows
	armed bool
	left  int
}

// newValve returns a valve and the connection string through it.
func (s *space) newValve() (*valve, string) {
	s.t.Helper()
	u, err := url.Parse(s.Env["AMENDS_DATABASE_URL"])
	if err != nil {
		s.t.Fatal(err)
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = listen.Close() })
	v := &valve{cond: sync.NewCond(&sync.Mutex{})}
	target := u.Host
	go serve(listen, func() (net.Conn, error) { return net.Dial("tcp", target) }, func(net.Conn) bool { return true }, v.gate)
	u.Host = listen.Addr().String()
	return v, u.String()
}

func (v *valve) gate(bytes int, out bool) {
	v.cond.L.Lock()
	defer v.cond.L.Unlock()
	if !out {
		return
	}
	for v.armed && v.left < bytes {
		v.cond.Wait()
	}
	v.left -= bytes
}

// arm lets so many more bytes through; open lets all.
func (v *valve) arm(bytes int) { v.set(true, bytes) }
func (v *valve) open()         { v.set(false, 0) }

// passed reports whether at least so many bytes have gone through since it was armed with all of them.
func (v *valve) passed(bytes, all int) bool {
	v.cond.L.Lock()
	defer v.cond.L.Unlock()
	return all-v.left >= bytes
}

func (v *valve) set(armed bool, left int) {
	v.cond.L.Lock()
	defer v.cond.L.Unlock()
	v.armed, v.left = armed, left
	v.cond.Broadcast()
}
