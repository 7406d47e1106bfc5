package broker

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// gauge counts the produce requests that were written and not answered.
type gauge struct {
	mu        sync.Mutex
	now, most int
	all       int
}

func (g *gauge) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now += n
	g.most = max(g.most, g.now)
	g.all += max(n, 0)
}

// tapped is a connection of a client. Answers to produce requests are held back for a moment, in which an eager client
// would write the next.
type tapped struct {
	net.Conn
	g        *gauge
	produces bool // this connection carries produce requests
	frame    int  // bytes left of the answer being read
	head     []byte
}

const produceKey = 0

func (c *tapped) Write(b []byte) (int, error) {
	if len(b) > 6 && binary.BigEndian.Uint16(b[4:]) == produceKey && int(binary.BigEndian.Uint32(b)) == len(b)-4 {
		c.produces = true
		c.g.add(1)
	}
	return c.Conn.Write(b)
}

func (c *tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.produces {
		for rest := b[:n]; len(rest) > 0; {
			rest = c.answer(rest)
		}
	}
	return n, err
}

// answer takes bytes of answers and counts each answer that ends.
func (c *tapped) answer(b []byte) []byte {
	if c.frame == 0 {
		take := min(4-len(c.head), len(b))
		c.head = append(c.head, b[:take]...)
		if len(c.head) == 4 {
			c.frame = int(binary.BigEndian.Uint32(c.head))
			c.head = c.head[:0]
		}
		return b[take:]
	}
	take := min(c.frame, len(b))
	if c.frame -= take; c.frame == 0 {
		time.Sleep(20 * time.Millisecond)
		c.g.add(-1)
	}
	return b[take:]
}

// C2: the next request waits for the answer of the one before, so that an answer that never comes leaves nothing behind it
// in the broker's log.
func TestOneProduceRequestInFlight(t *testing.T) {
	_, o := cluster(t)
	topic := create(t, openAdmin(t, o), "out", 1)
	var g gauge
	o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &tapped{Conn: conn, g: &g}, err
	}
	p, err := NewProducer(o, topic.Name, topic.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 3 {
		messages := make([]Message, 40)
		for i := range messages {
			messages[i].Value = []byte(strings.Repeat("x", ProduceBatchBytes/8))
		}
		if _, err := p.Produce(bounded(t), 0, messages); err != nil {
			t.Fatal(err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.most != 1 || g.all < 10 {
		t.Fatalf("%d produce requests in flight at once, of %d; want 1, of 10 or more", g.most, g.all)
	}
}
