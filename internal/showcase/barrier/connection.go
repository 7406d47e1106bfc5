package barrier

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Codes in place of a protocol version.
const (
	tlsCode = 80877103
	gssCode = 80877104
)

const (
	headerBytes     = 5        // type and length
	maxStartupBytes = 10_000   // the server's own limit
	readBytes       = 32 << 10 // buffer of each direction; what must be understood lies in its beginning
	peekBytes       = 1 << 10  // enough for the names in a Bind, a COMMIT, a tag
)

// connection is one of the process's with the server's beside it.
type connection struct {
	barrier *Barrier
	client  net.Conn
	ran     []string // prepared statements bound since the last simple query
	backend atomic.Int32
	keep    atomic.Pointer[Hold] // from the answer to COMMIT on nothing reaches the process

	mu     sync.Mutex // a leaf; guards what follows
	server net.Conn
	closed bool
}

// close ends both sides.
func (c *connection) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	_ = c.client.Close()
	if c.server != nil {
		_ = c.server.Close()
	}
}

// serve forwards until either side ends.
func (c *connection) serve() {
	defer c.close()
	in := bufio.NewReaderSize(c.client, readBytes)
	startup, err := c.startup(in)
	if err != nil {
		return
	}
	server, err := c.barrier.dial()
	if err != nil {
		return
	}
	c.mu.Lock()
	c.server = server
	closed := c.closed
	c.mu.Unlock()
	if closed {
		_ = server.Close()
		return
	}
	if _, err := server.Write(startup); err != nil {
		return
	}
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		defer c.close()
		_ = c.toClient(bufio.NewReaderSize(server, readBytes)) // how a connection ends is for the process to judge
	}()
	_ = c.toServer(in, server)
	c.close()
	<-answers
}

// startup reads the first message that is for the server, refusing encryption on loopback.
func (c *connection) startup(in *bufio.Reader) ([]byte, error) {
	for {
		size, err := in.Peek(4)
		if err != nil {
			return nil, err
		}
		n := binary.BigEndian.Uint32(size)
		if n < 8 || n > maxStartupBytes {
			return nil, fmt.Errorf("read startup message: %d bytes", n)
		}
		m := make([]byte, n)
		if _, err := io.ReadFull(in, m); err != nil {
			return nil, err
		}
		if code := binary.BigEndian.Uint32(m[4:]); code != tlsCode && code != gssCode {
			return m, nil
		}
		if _, err := c.client.Write([]byte{'N'}); err != nil {
			return nil, err
		}
	}
}

// message is one that waits in a reader: its type, its whole length, and the beginning of its body.
type message struct {
	kind  byte
	bytes int64
	body  []byte
}

// peek waits for the next message. Its body is whole up to peekBytes.
func peek(in *bufio.Reader) (message, error) {
	header, err := in.Peek(headerBytes)
	if err != nil {
		return message{}, err
	}
	m := message{kind: header[0], bytes: 1 + int64(binary.BigEndian.Uint32(header[1:]))}
	if m.bytes < headerBytes {
		return m, fmt.Errorf("read message: length %d", m.bytes-1)
	}
	if m.kind == 'd' { // rows of a COPY: nothing to understand
		return m, nil
	}
	body, err := in.Peek(int(min(m.bytes, peekBytes)))
	if err != nil {
		return m, err
	}
	m.body = body[headerBytes:]
	return m, nil
}

// text returns the string after n other strings of a body.
func text(body []byte, n int) string {
	for range n {
		_, body, _ = bytes.Cut(body, []byte{0})
	}
	s, _, _ := bytes.Cut(body, []byte{0})
	return string(s)
}

// toServer forwards message by message, up to the one that is held.
func (c *connection) toServer(in *bufio.Reader, server io.Writer) error {
	for {
		m, err := peek(in)
		if err != nil {
			return err
		}
		if h := c.read(m); h != nil {
			h.backend = c.backend.Load()
			close(h.reached)
			_, err := io.Copy(io.Discard, in) // until the process is gone
			return err
		}
		if _, err := io.CopyN(server, in, m.bytes); err != nil {
			return err
		}
	}
}

// read keeps account of the transaction and returns the hold that a message meets before the server sees it.
func (c *connection) read(m message) *Hold {
	switch m.kind {
	case 'B':
		statement := text(m.body, 1)
		c.ran = append(c.ran, statement)
		return c.barrier.take(BeforeStatement, func(s string) bool { return s == statement })
	case 'Q':
		ran := c.ran
		c.ran = nil
		if !strings.EqualFold(strings.TrimRight(text(m.body, 0), "; "), "COMMIT") {
			return nil
		}
		did := func(s string) bool { return slices.Contains(ran, s) }
		if h := c.barrier.take(BeforeCommit, did); h != nil {
			return h
		}
		c.keep.Store(c.barrier.take(AfterCommit, did)) // before the server can answer
	}
	return nil
}

// toClient forwards answers, up to that of the COMMIT which is kept.
func (c *connection) toClient(in *bufio.Reader) error {
	for {
		m, err := peek(in)
		if err != nil {
			return err
		}
		switch m.kind {
		case 'K':
			if len(m.body) >= 4 {
				c.backend.Store(int32(binary.BigEndian.Uint32(m.body)))
			}
		case 'C':
			if h := c.keep.Load(); h != nil && text(m.body, 0) == "COMMIT" {
				h.backend = c.backend.Load()
				close(h.reached)
				_, err := io.Copy(io.Discard, in) // until the process is gone, and with it the server's side
				return err
			}
		}
		if _, err := io.CopyN(c.client, in, m.bytes); err != nil {
			return err
		}
	}
}

// tlsRequest asks a server for TLS.
func tlsRequest() []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), tlsCode)
}
