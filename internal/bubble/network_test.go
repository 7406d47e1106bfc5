package bubble

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// valve lets through what waits at it while it is open.
type valve struct {
	mu      sync.Mutex
	shut    bool
	changed chan struct{} // closed by the next change
}

func newValve() *valve { return &valve{changed: make(chan struct{})} }

func (v *valve) set(shut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shut = shut
	close(v.changed)
	v.changed = make(chan struct{})
}

// now returns whether the valve is shut, and what its next change closes.
func (v *valve) now() (shut bool, changed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.shut, v.changed
}

// wait returns true once the valve is open, false if end came first.
func (v *valve) wait(end <-chan struct{}) bool {
	for {
		shut, changed := v.now()
		if !shut {
			return true
		}
		select {
		case <-changed:
		case <-end:
			return false
		}
	}
}

// A network takes no time, but for what asks so often that it would never end, or not for hours of the machine's time: a client
// that asks again at once, until something else happens. Each process may ask so often at once, and then once in a breather.
const (
	oftenAtOnce = 500
	breather    = time.Millisecond
)

// network is what one process has of the network between it and the brokers.
type network struct {
	stack *kfake.VirtualNetwork
	flow  *valve // shut: nothing arrives, nothing is refused
	lost  func() // told of each reply that is lost

	mu    sync.Mutex // a leaf; guards the rest
	conns map[*conn]struct{}
	cut   bool // connections are refused
	lose  int  // replies that will be lost, each with its connection
	lag   time.Duration
	owed  time.Time // when what was asked so far is paid for, a breather each
}

func newNetwork(stack *kfake.VirtualNetwork, lost func()) *network {
	return &network{stack: stack, flow: newValve(), lost: lost, conns: map[*conn]struct{}{}}
}

// dial is broker.Options.Dial.
func (n *network) dial(ctx context.Context, family, address string) (net.Conn, error) {
	n.pace()
	if !n.flow.wait(ctx.Done()) {
		return nil, &net.OpError{Op: "dial", Net: family, Err: ctx.Err()}
	}
	if n.refuses() {
		return nil, &net.OpError{Op: "dial", Net: family, Err: syscall.ECONNREFUSED}
	}
	inner, err := n.stack.DialContext(ctx, family, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: family, Err: err}
	}
	c := &conn{Conn: inner, n: n, closed: make(chan struct{}), read: newDeadline(), write: newDeadline()}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns[c] = struct{}{}
	return c, nil
}

func (n *network) refuses() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut
}

// refuse cuts the process off, or lets it connect again.
func (n *network) refuse(cut bool) {
	n.mu.Lock()
	n.cut = cut
	n.mu.Unlock()
	if cut {
		n.drop()
	}
}

// drop ends every connection.
func (n *network) drop() {
	n.mu.Lock()
	var all []*conn
	for c := range n.conns {
		all = append(all, c)
	}
	n.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// loseReply makes the next reply, whatever it answers, end its connection instead.
func (n *network) loseReply() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose++
}

func (n *network) slow(lag time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lag = lag
}

// heal ends every trouble.
func (n *network) heal() {
	n.mu.Lock()
	n.cut, n.lose, n.lag = false, 0, 0
	n.mu.Unlock()
	n.flow.set(false)
}

// loses reports whether the reply that arrives now is lost.
func (n *network) loses() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lose == 0 {
		return false
	}
	n.lose--
	return true
}

// pace takes the time that sending something takes.
func (n *network) pace() {
	n.mu.Lock()
	wait, now := n.lag, time.Now()
	if n.owed.Before(now) {
		n.owed = now
	}
	n.owed = n.owed.Add(breather)
	wait = max(wait, n.owed.Sub(now)-oftenAtOnce*breather)
	n.mu.Unlock()
	if wait > 0 {
		time.Sleep(wait)
	}
}

// conn is a connection of a process.
type conn struct {
	net.Conn
	n      *network
	closed chan struct{}
	once   sync.Once
	read   deadline
	write  deadline
}

// deadline is a moment that may be moved while something waits for it: so the client cancels what it has sent.
type deadline struct {
	mu    sync.Mutex // a leaf
	at    time.Time
	moved chan struct{} // closed by the next move
}

func newDeadline() deadline { return deadline{moved: make(chan struct{})} }

func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = at
	close(d.moved)
	d.moved = make(chan struct{})
}

func (d *deadline) now() (at time.Time, moved <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at, d.moved
}

// pass waits until the network carries something: net.ErrClosed or os.ErrDeadlineExceeded where it does not in time.
func (c *conn) pass(d *deadline) error {
	for {
		shut, changed := c.n.flow.now()
		if !shut {
			return nil
		}
		at, moved := d.now()
		var late <-chan time.Time
		if !at.IsZero() {
			late = time.After(time.Until(at))
		}
		select {
		case <-changed:
		case <-moved:
		case <-c.closed:
			return net.ErrClosed
		case <-late:
			return os.ErrDeadlineExceeded
		}
	}
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 {
		return n, err
	}
	if err := c.pass(&c.read); err != nil {
		return 0, err
	}
	if c.n.loses() {
		c.n.lost()
		_ = c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	c.n.pace()
	if err := c.pass(&c.write); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.n.mu.Lock()
		delete(c.n.conns, c)
		c.n.mu.Unlock()
	})
	return c.Conn.Close()
}

func (c *conn) SetDeadline(t time.Time) error {
	c.read.set(t)
	c.write.set(t)
	return c.Conn.SetDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.read.set(t)
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.write.set(t)
	return c.Conn.SetWriteDeadline(t)
}
