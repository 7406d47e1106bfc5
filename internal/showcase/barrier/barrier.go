package barrier

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// dialTimeout bounds connecting to the server, its part of TLS included.
const dialTimeout = 10 * time.Second

// Moment says where of a transaction a process is held.
type Moment int

// The moments.
const (
	BeforeStatement Moment = iota + 1 // the named statement has not reached the server
	BeforeCommit                      // the transaction ran the named statement; its COMMIT has not reached the server
	AfterCommit                       // the server has committed; the process does not know
)

// Point is a moment of the first transaction that runs the named prepared statement.
type Point struct {
	Statement string
	Moment    Moment
}

// Hold is a point that was armed.
type Hold struct {
	reached chan struct{}
	point   Point
	backend int32
}

// Reached is closed when a transaction is held at the point.
func (h *Hold) Reached() <-chan struct{} { return h.reached }

// Backend is the process id of the server's side of the connection that is held. Only after Reached.
func (h *Hold) Backend() int32 { return h.backend }

// Barrier forwards connections from loopback to one server. Safe for concurrent use.
type Barrier struct {
	listener net.Listener
	url      string
	ways     []way // to the server, in the order in which they are tried
	wg       sync.WaitGroup

	mu     sync.Mutex // a leaf; guards what follows
	armed  []*Hold
	conns  map[*connection]struct{}
	closed bool
}

// Listen begins to forward to the server of a connection URL. It fails on an address that cannot be read; the server is
// reached when a process connects.
func Listen(database string) (*Barrier, error) {
	config, err := pgconn.ParseConfig(database)
	if err != nil {
		return nil, fmt.Errorf("read database address: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a process: %w", err)
	}
	b := &Barrier{listener: listener, conns: map[*connection]struct{}{}, url: throughURL(config, listener.Addr().String())}
	b.ways = append(b.ways, newWay(config.Host, config.Port, config.TLSConfig))
	for _, f := range config.Fallbacks { // other hosts, and without TLS where the address only prefers it
		b.ways = append(b.ways, newWay(f.Host, f.Port, f.TLSConfig))
	}
	b.wg.Go(b.accept)
	return b, nil
}

// throughURL is the connection URL of a database with another host, reached without TLS.
func throughURL(c *pgconn.Config, host string) string {
	u := url.URL{Scheme: "postgres", Host: host, Path: "/" + c.Database, User: url.UserPassword(c.User, c.Password)}
	q := url.Values{}
	for name, value := range c.RuntimeParams {
		q.Set(name, value)
	}
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return u.String()
}

// URL is the connection URL through the barrier, its password included.
func (b *Barrier) URL() string { return b.url }

// Arm holds the next transaction that comes to the point, once.
func (b *Barrier) Arm(p Point) *Hold {
	h := &Hold{point: p, reached: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = append(b.armed, h)
	return h
}

// take returns the hold that is armed for a point, if any, and disarms it.
func (b *Barrier) take(moment Moment, ran func(statement string) bool) *Hold {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, h := range b.armed {
		if h.point.Moment == moment && ran(h.point.Statement) {
			b.armed = slices.Delete(b.armed, i, i+1)
			return h
		}
	}
	return nil
}

// Close ends every connection and returns when nothing runs any more.
func (b *Barrier) Close() {
	b.mu.Lock()
	b.closed = true
	for c := range b.conns {
		c.close()
	}
	b.mu.Unlock()
	_ = b.listener.Close()
	b.wg.Wait()
}

func (b *Barrier) accept() {
	for {
		client, err := b.listener.Accept()
		if err != nil {
			return
		}
		c := &connection{barrier: b, client: client}
		b.mu.Lock()
		closed := b.closed
		if !closed {
			b.conns[c] = struct{}{}
		}
		b.mu.Unlock()
		if closed {
			_ = client.Close()
			continue
		}
		b.wg.Go(func() {
			c.serve()
			b.mu.Lock()
			delete(b.conns, c)
			b.mu.Unlock()
		})
	}
}

// way is one way to a server; tls is nil for a plain one.
type way struct {
	tls     *tls.Config
	network string
	address string
}

func newWay(host string, port uint16, config *tls.Config) way {
	network, address := pgconn.NetworkAddress(host, port)
	return way{tls: config, network: network, address: address}
}

// dial connects to the server as the database's address asks for.
func (b *Barrier) dial() (conn net.Conn, err error) {
	for _, w := range b.ways {
		if conn, err = w.dial(); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func (w way) dial() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, w.network, w.address)
	if err != nil || w.tls == nil {
		return conn, err
	}
	secured, err := w.secure(ctx, conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secured, nil
}

// secure asks the server for TLS and shakes hands.
func (w way) secure(ctx context.Context, conn net.Conn) (net.Conn, error) {
	_ = conn.SetDeadline(time.Now().Add(dialTimeout)) // a connection that is closed says so by the write
	answer := make([]byte, 1)
	if _, err := conn.Write(tlsRequest()); err != nil {
		return nil, err
	}
	if _, err := conn.Read(answer); err != nil {
		return nil, err
	}
	if answer[0] != 'S' {
		return nil, fmt.Errorf("connect to %s: the server refuses TLS, which its address asks for", w.address)
	}
	secured := tls.Client(conn, w.tls)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return secured, conn.SetDeadline(time.Time{})
}
