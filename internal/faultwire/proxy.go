package faultwire

import (
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// Connect is the name of the statement that opens a connection.
const Connect = "connect"

// Action is what happens to a statement.
type Action int

// The actions. Acted means: the server has answered, and nothing of the answer or of what was answered before in the same
// pipeline has reached the client.
const (
	CutBefore Action = iota + 1 // the connection ends before the server sees the statement
	CutAfter                    // the connection ends after the server acted
	Delay                       // nothing arrives until the client has given up, and then all of it does
	LoseReply                   // the server acts, and no answer arrives; the connection stays
	Late                        // the client's connection ends at once; the statement arrives after the lag
	Hold                        // the statement waits for Release
	HoldReply                   // the server acts; the answer waits for Release
	Warn                        // the answer carries the warning 01000: not replicated
)

var actionNames = [...]string{CutBefore: "cut before", CutAfter: "cut after", Delay: "delayed", LoseReply: "reply lost", Late: "late",
	Hold: "held", HoldReply: "reply held", Warn: "not replicated"}

// String names the action.
func (a Action) String() string { return actionNames[a] }

// Statement is one request of a client.
type Statement struct {
	// Name is Connect, the name of a prepared statement, "prepare " and that name, or the beginning of a text of SQL.
	Name string
	// Transaction holds the names of the statements before it since its transaction began.
	Transaction []string
	// Index counts the statements of all connections since Watch, from 0.
	Index int
}

// At matches the statement of an index.
func At(index int) func(Statement) bool { return func(s Statement) bool { return s.Index == index } }

// Named matches a statement by its name.
func Named(name string) func(Statement) bool { return func(s Statement) bool { return s.Name == name } }

// CommitOf matches the COMMIT of a transaction that ran the named statement.
func CommitOf(name string) func(Statement) bool {
	return func(s Statement) bool { return s.Name == "COMMIT" && slices.Contains(s.Transaction, name) }
}

// Proxy forwards connections to a server. Safe for concurrent use.
type Proxy struct {
	t        testing.TB
	listener net.Listener
	url      url.URL
	wg       sync.WaitGroup

	mu      sync.Mutex // a leaf; guards what follows
	target  string
	conns   map[*connection]struct{}
	shots   []*Shot // that have not met their statement
	armed   []*Shot // all of them
	seen    []string
	opened  int
	refuses bool
	closed  bool
	// shift is added to the process ids that the server announces: what a pooler does.
	shift byte
}

// New starts a proxy in front of the server of a connection URL. It ends with the test.
func New(t testing.TB, server string) *Proxy {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("start proxy: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start proxy: %v", err)
	}
	p := &Proxy{t: t, listener: listener, url: *u, target: u.Host, conns: map[*connection]struct{}{}}
	p.url.Host = listener.Addr().String()
	q := p.url.Query()
	q.Set("sslmode", "disable")
	p.url.RawQuery = q.Encode()
	t.Cleanup(p.Close)
	p.wg.Go(p.accept)
	return p
}

// URL returns the connection URL through the proxy.
func (p *Proxy) URL() string { return p.url.String() }

// Close ends every connection and returns when nothing runs any more.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for _, s := range p.armed {
		s.Release()
	}
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.wg.Wait()
}

// Target makes new connections go to the server of another URL, with the database and user of the client's.
func (p *Proxy) Target(server string) {
	u, err := url.Parse(server)
	if err != nil {
		p.t.Errorf("retarget proxy: %v", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = u.Host
}

// Refuse makes new connections end at once, until it is told otherwise.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = refuse
}

// Cut ends every connection on both sides.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.close()
	}
}

// CutClients ends every connection on the client's side; the server keeps its own until the returned function is called.
func (p *Proxy) CutClients() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var cut []*connection
	for c := range p.conns {
		if c.server == nil {
			continue
		}
		c.keepServer.Store(true)
		_ = c.client.Close()
		cut = append(cut, c)
	}
	return func() {
		for _, c := range cut {
			_ = c.server.Close()
		}
	}
}

// ShiftPIDs announces wrong process ids on new connections, as a pooler does.
func (p *Proxy) ShiftPIDs() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shift = 1
}

// Opened counts the connections that clients opened, those that only cancel aside.
func (p *Proxy) Opened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}

// Watch begins a new list of statements and forgets what is armed.
func (p *Proxy) Watch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen, p.shots = nil, nil
}

// Seen returns the names of the statements since Watch, in the order in which they came.
func (p *Proxy) Seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// Shot is an action that waits for its statement, once.
type Shot struct {
	when    func(Statement) bool
	fired   chan struct{} // closed when the action has taken place
	release chan struct{} // closed by Release
	once    sync.Once
	target  *connection
	action  Action
	lag     time.Duration
}

// Arm makes an action wait for the first statement that matches. Late and Delay deliver after the lag.
func (p *Proxy) Arm(a Action, lag time.Duration, when func(Statement) bool) *Shot {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &Shot{action: a, lag: lag, when: when, fired: make(chan struct{}), release: make(chan struct{})}
	p.shots, p.armed = append(p.shots, s), append(p.armed, s)
	return s
}

// Fired is closed when the action has taken place: the connection is cut, the server has acted, or the statement waits.
func (s *Shot) Fired() <-chan struct{} { return s.fired }

// Done reports whether the action has taken place.
func (s *Shot) Done() bool {
	select {
	case <-s.fired:
		return true
	default:
		return false
	}
}

// PID returns the process id of the backend whose statement was met. Only after Fired.
func (s *Shot) PID() int32 { return s.target.pid.Load() }

// Release lets what is held go on.
func (s *Shot) Release() { s.once.Do(func() { close(s.release) }) }

// met notes a statement and returns the action that it meets, if any.
func (p *Proxy) met(c *connection, s Statement) *Shot {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Index = len(p.seen)
	if s.Name == Connect {
		p.opened++
	}
	p.seen = append(p.seen, s.Name)
	for i, shot := range p.shots {
		if shot.when(s) {
			p.shots = slices.Delete(slices.Clone(p.shots), i, i+1)
			shot.target = c
			return shot
		}
	}
	return nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		c := &connection{p: p, client: client, shift: p.shift}
		refused := p.refuses || p.closed
		target := p.target
		if !refused {
			p.conns[c] = struct{}{}
		}
		p.mu.Unlock()
		if refused {
			_ = client.Close()
			continue
		}
		p.wg.Go(func() {
			c.serve(target)
			p.mu.Lock()
			delete(p.conns, c)
			p.mu.Unlock()
		})
	}
}
