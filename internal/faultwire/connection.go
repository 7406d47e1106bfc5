package faultwire

import (
	"bufio"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// actWait bounds the waiting for a server to act. It can be long: the statement may wait for a lock.
const actWait = 30 * time.Second

// connection is one client's with the server's beside it.
type connection struct {
	p          *Proxy
	client     net.Conn
	server     net.Conn
	keepServer atomic.Bool // the client's end is not passed on
	pid        atomic.Int32
	shift      byte

	prepared    map[string]string // the text of each prepared statement
	transaction []string
	current     Statement
	executes    int // of the present pipeline
	copying     bool
	simple      bool // the present statement ends by ReadyForQuery

	mu       sync.Mutex // guards what follows
	changed  *sync.Cond
	answered int // statements of the present pipeline that the server completed
	ready    int // times the server was ready for a query
	asked    int // times it was asked to become so
	failed   bool
	gone     bool
	withhold bool
	warn     bool
	held     []message
}

// serve forwards until either side ends.
func (c *connection) serve(target string) {
	c.changed = sync.NewCond(&c.mu)
	c.prepared = map[string]string{}
	defer c.client.Close()
	in := bufio.NewReaderSize(c.client, 1<<16)
	startup, err := readMessage(in, false)
	for err == nil && (startup.code() == sslCode || startup.code() == gssCode) {
		if _, err = c.client.Write([]byte{'N'}); err == nil {
			startup, err = readMessage(in, false)
		}
	}
	if err != nil {
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	c.p.mu.Lock()
	c.server = server
	closed := c.p.closed
	c.p.mu.Unlock()
	if closed {
		return
	}
	if startup.code() == cancelCode {
		_, _ = server.Write(startup)
		_, _ = server.Read(make([]byte, 1)) // the server has acted when it closes
		return
	}
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		c.toClient()
	}()
	c.current = Statement{Name: Connect}
	if c.open(startup) {
		c.toServer(in)
	}
	if !c.keepServer.Load() {
		_ = server.Close()
	}
	<-answers
}

// close ends both sides; the caller holds the proxy's lock.
func (c *connection) close() {
	c.keepServer.Store(false)
	_ = c.client.Close()
	if c.server != nil {
		_ = c.server.Close()
	}
}

// toServer forwards message by message.
func (c *connection) toServer(in *bufio.Reader) {
	var shot *Shot
	for {
		m, err := readMessage(in, true)
		if err != nil {
			return
		}
		begins, ends := c.read(m)
		if begins {
			shot = c.p.met(c, c.statement())
			c.transaction = append(c.transaction, c.current.Name)
			if shot != nil && !c.before(shot, m, in) {
				return
			}
		}
		if _, err := c.server.Write(m); err != nil {
			return
		}
		if ends && shot != nil && !c.after(shot) {
			return
		}
	}
}

// open is toServer for the startup message.
func (c *connection) open(m message) bool {
	shot := c.p.met(c, c.statement())
	if shot != nil && !c.before(shot, m, nil) {
		return false
	}
	c.mu.Lock()
	c.asked++
	c.mu.Unlock()
	if _, err := c.server.Write(m); err != nil {
		return false
	}
	return shot == nil || c.after(shot)
}

func (c *connection) statement() Statement {
	s := c.current
	s.Transaction = append([]string(nil), c.transaction...)
	return s
}

// read keeps account of a message: whether a statement begins or ends with it.
func (c *connection) read(m message) (begins, ends bool) {
	begin := func(name string, simple bool) {
		c.current, c.simple, begins = Statement{Name: name}, simple, true
	}
	switch m.kind() {
	case 'P':
		name, sql := m.text(0), m.text(1)
		c.prepared[name] = sql
		if name == "" {
			begin(Label(sql), false)
		} else {
			begin("prepare "+name, true)
		}
	case 'B':
		name := m.text(1)
		c.copying = isCopy(c.prepared[name])
		if name != "" {
			begin(name, false)
		}
		if strings.HasPrefix(c.prepared[name], "BEGIN") {
			c.transaction = nil
		}
	case 'E':
		c.count(func() { c.executes++ })
		ends = !c.copying
	case 'c':
		ends = true
	case 'Q':
		begin(Label(m.text(0)), true)
		if strings.HasPrefix(c.current.Name, "BEGIN") {
			c.transaction = nil
		}
		c.count(func() { c.asked, c.executes = c.asked+1, 0 })
		ends = true
	case 'S':
		c.count(func() { c.asked++ })
		ends = c.simple
	}
	return begins, ends
}

func isCopy(sql string) bool {
	return strings.HasPrefix(sql, "COPY ") && strings.Contains(sql, "FROM STDIN")
}

func (c *connection) count(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// before does what an action does before the server sees the statement; false ends the connection.
func (c *connection) before(s *Shot, m message, in *bufio.Reader) bool {
	switch s.action {
	case CutBefore:
		close(s.fired) // first: who sees the end may ask
		_ = c.client.Close()
		_ = c.server.Close()
		return false
	case CutAfter, LoseReply, HoldReply:
		c.count(func() { c.withhold = true })
	case Hold:
		close(s.fired)
		<-s.release
	case Warn:
		c.count(func() { c.warn = true })
		close(s.fired)
	case Late:
		close(s.fired)
		_ = c.client.Close()
		c.deliver(s, m)
		return false
	case Delay:
		close(s.fired)
		all := m
		for in != nil {
			next, err := readMessage(in, true)
			if err != nil || next.kind() == 'X' { // the client's last word, after which it waits for the server
				break
			}
			c.read(next)
			all = append(all, next...)
		}
		if in == nil {
			_, _ = c.client.Read(make([]byte, 1)) // nobody speaks before the server did
		}
		c.deliver(s, all)
		return false
	}
	return true
}

// deliver brings the server what the client does not wait for any more.
func (c *connection) deliver(s *Shot, m message) {
	select {
	case <-time.After(s.lag):
	case <-s.release: // the proxy ends
	}
	c.count(func() { c.withhold = true })
	if _, err := c.server.Write(m); err == nil {
		c.acted(2 * time.Second)
	}
}

// after does what an action does once the server has all of the statement; false ends the connection.
func (c *connection) after(s *Shot) bool {
	switch s.action {
	case CutAfter, LoseReply, HoldReply:
		if !c.acted(actWait) {
			c.p.t.Errorf("the server did not answer to %s", c.current.Name)
		}
	default:
		return true
	}
	switch s.action {
	case CutAfter:
		close(s.fired)
		_ = c.client.Close()
		return false
	case HoldReply:
		close(s.fired)
		<-s.release
		c.mu.Lock()
		defer c.mu.Unlock()
		c.withhold = false
		for _, m := range c.held {
			if _, err := c.client.Write(m); err != nil {
				return false
			}
		}
		c.held = nil
	case LoseReply:
		close(s.fired)
	}
	return true
}

// acted waits until the server has answered to everything that it was sent; false when it does not within d.
func (c *connection) acted(d time.Duration) bool {
	if !c.simple && c.current.Name != Connect {
		if _, err := c.server.Write(newMessage('H', nil)); err != nil { // or it would answer at the pipeline's end
			return true
		}
	}
	timer := time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed.Broadcast()
	})
	defer timer.Stop()
	deadline := time.Now().Add(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.gone && !c.failed && (c.ready < c.asked || c.answered < c.executes) {
		if !time.Now().Before(deadline) {
			return false
		}
		c.changed.Wait()
	}
	return true
}

// toClient forwards the server's messages, unless they are withheld.
func (c *connection) toClient() {
	in := bufio.NewReaderSize(c.server, 1<<16)
	defer func() {
		c.count(func() { c.gone = true })
		c.changed.Broadcast()
		if !c.keepServer.Load() {
			_ = c.client.Close()
		}
	}()
	for {
		m, err := readMessage(in, true)
		if err != nil {
			return
		}
		c.account(m)
		if !c.forward(m) {
			return
		}
		c.changed.Broadcast()
	}
}

// account notes what a message of the server ends.
func (c *connection) account(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.kind() {
	case 'C', 'I', 's':
		c.answered++
	case 'E':
		c.failed = true
	case 'R':
		c.ready = max(c.ready, 1) // to the startup
	case 'K':
		c.pid.Store(int32(m[5])<<24 | int32(m[6])<<16 | int32(m[7])<<8 | int32(m[8]))
		m[8] += c.shift
	case 'Z':
		c.ready = c.asked
		c.answered, c.executes, c.failed = 0, 0, false
	}
}

// forward writes a message to the client; false when the client is gone and nobody waits for the server.
func (c *connection) forward(m message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.withhold {
		c.held = append(c.held, m)
		return true
	}
	if c.warn && m.kind() == 'C' {
		c.warn = false
		if _, err := c.client.Write(notReplicated()); err != nil {
			return false
		}
	}
	_, err := c.client.Write(m)
	return err == nil || c.keepServer.Load()
}
