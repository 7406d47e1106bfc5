package acceptance

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// loss is what a proxy does to the next COMMIT of interest.
type loss int

const (
	nothing     loss = iota
	lostRequest      // the connection ends before the server sees it
	lostReply        // the server acts on it, and the connection ends before its answer
)

// proxy stands between programs and PostgreSQL. Once armed it loses one COMMIT, request or reply.
type proxy struct {
	t      testing.TB
	listen net.Listener
	target string
	mu     sync.Mutex
	mark   []byte // in the transaction whose COMMIT is lost
	what   loss
	lost   int
}

// newProxy returns a proxy and the connection string through it.
func newProxy(t testing.TB, address string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listen: listen, target: u.Host}
	t.Cleanup(func() { _ = listen.Close() })
	go p.serve()
	u.Host = listen.Addr().String()
	return p, u.String()
}

func (p *proxy) serve() {
	for {
		client, err := p.listen.Accept()
		if err != nil {
			return
		}
		go p.connection(client)
	}
}

// arm makes the next COMMIT of a transaction that ran a statement of the given name be lost.
func (p *proxy) arm(what loss, statement string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.mark = what, []byte(statement)
}

// losses counts what was lost.
func (p *proxy) losses() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// take returns what becomes of a COMMIT, once.
func (p *proxy) take(transaction []byte) loss {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.what == nothing || !bytes.Contains(transaction, p.mark) {
		return nothing
	}
	what := p.what
	p.what = nothing
	p.lost++
	return what
}

// commitMessage is a simple query COMMIT.
var commitMessage = []byte("Q\x00\x00\x00\x0bCOMMIT\x00")

func (p *proxy) connection(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = io.Copy(client, server) // ends with the first answer that a closed client cannot take
		client.Close()
	}()
	var transaction []byte
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		transaction = append(transaction, buffer[:n]...)
		if bytes.HasSuffix(transaction, commitMessage) {
			switch p.take(transaction) {
			case lostRequest:
				return
			case lostReply:
				client.Close()
				if _, err := server.Write(buffer[:n]); err != nil {
					return
				}
				select { // the server stays connected until it has answered
				case <-answered:
				case <-time.After(10 * time.Second):
					p.t.Error("no answer to a COMMIT")
				}
				return
			}
			transaction = nil
		}
		if _, werr := server.Write(buffer[:n]); werr != nil || err != nil {
			return
		}
	}
}
