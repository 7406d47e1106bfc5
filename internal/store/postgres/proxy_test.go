package postgres_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// moment is where a cutting proxy acts on the next COMMIT.
type moment int

const (
	never        moment = iota
	beforeSync          // the pipeline's Sync, and all after it, never reaches the server
	beforeCommit        // COMMIT never reaches the server
	afterCommit         // the server acts on COMMIT, its answer never arrives
)

// proxy stands between a client and a server and ends connections at a chosen moment.
type proxy struct {
	t        *testing.T
	listener net.Listener
	server   string
	mu       sync.Mutex
	when     moment
	cuts     int
	held     func() // what the next COMMIT waits for
	shiftPID bool
}

// newProxy returns a proxy in front of a database and the URL to reach it.
func newProxy(t *testing.T, databaseURL string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: listener, server: u.Host}
	t.Cleanup(func() { listener.Close() })
	go p.accept()
	u.Host = listener.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return p, u.String()
}

// cut makes the proxy act once at that moment.
func (p *proxy) cut(when moment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.when = when
}

// hold makes the next COMMIT wait, once, until wait returns.
func (p *proxy) hold(wait func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = wait
}

// holding uses up what a message has to wait for.
func (p *proxy) holding(message []byte) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil || message[0] != 'Q' || !strings.HasPrefix(string(message[5:]), "COMMIT") {
		return func() {}
	}
	wait := p.held
	p.held = nil
	return wait
}

// done returns how often it acted.
func (p *proxy) done() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// due reports whether this message of a client is the moment, and uses the moment up.
func (p *proxy) due(message []byte) moment {
	p.mu.Lock()
	defer p.mu.Unlock()
	commit := message[0] == 'Q' && strings.HasPrefix(string(message[5:]), "COMMIT")
	if p.when == beforeSync && message[0] == 'S' || p.when != beforeSync && p.when != never && commit {
		when := p.when
		p.when = never
		p.cuts++
		return when
	}
	return never
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			client.Close()
			continue
		}
		go p.toServer(client, server)
		go p.toClient(server, client)
	}
}

// toServer forwards message by message.
func (p *proxy) toServer(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	if message, err := readMessage(client, false); err != nil || !write(server, message) {
		return
	}
	for {
		message, err := readMessage(client, true)
		if err != nil {
			return
		}
		p.holding(message)()
		switch p.due(message) {
		case beforeSync, beforeCommit:
			return
		case afterCommit:
			server.Write(message)
			client.Close()
			io.Copy(io.Discard, server) // until the server has acted and closes
			return
		}
		if !write(server, message) {
			return
		}
	}
}

func (p *proxy) toClient(server, client net.Conn) {
	defer client.Close()
	for {
		message, err := readMessage(server, true)
		if err != nil {
			return
		}
		if p.shiftPID && message[0] == 'K' {
			message[8]++
		}
		if !write(client, message) {
			return
		}
	}
}

func write(c net.Conn, b []byte) bool {
	_, err := c.Write(b)
	return err == nil
}

// readMessage reads one protocol message with its header; the startup message has no type byte.
func readMessage(c net.Conn, typed bool) ([]byte, error) {
	header := make([]byte, 4, 5)
	if typed {
		header = header[:5]
	}
	if _, err := io.ReadFull(c, header); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(header[len(header)-4:])
	message := append(header, make([]byte, length-4)...)
	_, err := io.ReadFull(c, message[len(header):])
	return message, err
}
