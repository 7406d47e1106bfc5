package faultwire_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"amends/internal/faultwire"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres"
)

// probe is a namespace reached through a proxy. It passes every call on; around one of them, the target, it notes what
// was sent and what is stored, and arms the case's fault.
type probe struct {
	*postgres.Namespace
	c *cell
}

// cell is one case: a namespace, a target call, and at most one fault.
type cell struct {
	*database
	kind   *kind
	cfg    *manifest.Config
	from   *cell // whose namespace it looks at; nil where it has its own
	direct *postgres.Namespace
	proxy  *faultwire.Proxy
	db     *postgres.DB // through the proxy
	ns     *probe
	topic  *topic
	fault  *fault
	shot   *faultwire.Shot
	ends   []func()
	noted  sync.Mutex     // guards calls
	calls  map[string]int // that succeeded, but for the target
	// Of the target call.
	met           bool
	done          atomic.Bool // it has returned
	statements    []string
	before, after string
	final         string // at the end of the run
	err           error
}

// fault is an action on one statement of the target call: the nth of its name, from 0.
type fault struct {
	name   string
	nth    int
	action faultwire.Action
}

// lag is how much later a late statement arrives.
const lag = 150 * time.Millisecond

// call makes one call. Nothing but the target is disturbed or noted.
func (c *cell) call(ctx context.Context, op string, f func(context.Context) error) error {
	if op != c.kind.op || c.succeeded(op) != c.kind.nth || c.met {
		err := f(ctx)
		if err == nil {
			c.noted.Lock()
			c.calls[op]++
			c.noted.Unlock()
		}
		return err
	}
	c.met = true
	c.before = c.state(false)
	c.proxy.Watch()
	inner := newExpiring(ctx)
	stop := func() {}
	if c.fault != nil {
		times := 0
		c.shot = c.proxy.Arm(c.fault.action, lag, func(s faultwire.Statement) bool {
			if s.Name == c.fault.name {
				times++
				return times == c.fault.nth+1
			}
			return false
		})
		if c.fault.action == faultwire.Delay || c.fault.action == faultwire.LoseReply {
			stop = inner.expireAfter(c.shot.Fired(), 30*time.Millisecond)
		}
	}
	c.err = f(inner)
	stop()
	c.statements = withoutPings(c.proxy.Seen())
	c.proxy.Watch()
	c.after = c.state(false)
	c.done.Store(true)
	return c.err
}

func (c *cell) succeeded(op string) int {
	c.noted.Lock()
	defer c.noted.Unlock()
	return c.calls[op]
}

// withoutPings leaves out what a pool asks of connections that were idle for a while.
func withoutPings(names []string) (out []string) {
	for _, n := range names {
		if !strings.HasPrefix(n, "-- ping") {
			out = append(out, n)
		}
	}
	return out
}

func (c *cell) state(harmless bool) string {
	if c.kind.state != nil {
		return c.kind.state(c)
	}
	return c.dump(c.cfg.Namespace, harmless)
}

func (p *probe) Claim(ctx context.Context, id ledger.Partition) (o store.Owned, err error) {
	err = p.c.call(ctx, "claim", func(ctx context.Context) error { o, err = p.Namespace.Claim(ctx, id); return err })
	return o, err
}

func (p *probe) Observe(ctx context.Context, id ledger.Partition) (o store.Owned, err error) {
	err = p.c.call(ctx, "observe", func(ctx context.Context) error { o, err = p.Namespace.Observe(ctx, id); return err })
	return o, err
}

func (p *probe) Load(ctx context.Context, t store.Token, id ledger.Partition, keys []ledger.StockKey, whole bool) (h []store.KeyHistory, err error) {
	err = p.c.call(ctx, "load", func(ctx context.Context) error { h, err = p.Namespace.Load(ctx, t, id, keys, whole); return err })
	return h, err
}

func (p *probe) Commit(ctx context.Context, t store.Token, b *ledger.Batch) error {
	return p.c.call(ctx, "commit", func(ctx context.Context) error { return p.Namespace.Commit(ctx, t, b) })
}

func (p *probe) SaveSnapshots(ctx context.Context, t store.Token, id ledger.Partition, at ledger.Frontier, s []store.KeySnapshot) error {
	return p.c.call(ctx, "save", func(ctx context.Context) error { return p.Namespace.SaveSnapshots(ctx, t, id, at, s) })
}

func (p *probe) Bind(ctx context.Context, o manifest.Output) error {
	return p.c.call(ctx, "bind", func(ctx context.Context) error { return p.Namespace.Bind(ctx, o) })
}

func (p *probe) Binding(ctx context.Context) (o *manifest.Output, err error) {
	err = p.c.call(ctx, "binding", func(ctx context.Context) error { o, err = p.Namespace.Binding(ctx); return err })
	return o, err
}

func (p *probe) AcquireService(ctx context.Context, role store.Role, id ledger.Partition, holder string, ttl time.Duration) (l store.Lease, err error) {
	err = p.c.call(ctx, "acquire", func(ctx context.Context) error {
		l, err = p.Namespace.AcquireService(ctx, role, id, holder, ttl)
		return err
	})
	return l, err
}

func (p *probe) RenewServices(ctx context.Context, holder string, leases []store.Lease, ttl time.Duration) (lost []store.Lease, err error) {
	err = p.c.call(ctx, "renew", func(ctx context.Context) error {
		lost, err = p.Namespace.RenewServices(ctx, holder, leases, ttl)
		return err
	})
	return lost, err
}

func (p *probe) ReleaseService(ctx context.Context, l store.Lease) error {
	return p.c.call(ctx, "release", func(ctx context.Context) error { return p.Namespace.ReleaseService(ctx, l) })
}

func (p *probe) RelayPosition(ctx context.Context, id ledger.Partition) (r store.RelayPosition, err error) {
	err = p.c.call(ctx, "relay position", func(ctx context.Context) error { r, err = p.Namespace.RelayPosition(ctx, id); return err })
	return r, err
}

func (p *probe) LastReceipt(ctx context.Context, id ledger.Partition) (r *store.Receipt, err error) {
	err = p.c.call(ctx, "last receipt", func(ctx context.Context) error { r, err = p.Namespace.LastReceipt(ctx, id); return err })
	return r, err
}

func (p *probe) Pending(ctx context.Context, id ledger.Partition, from store.RelayPosition, most int) (d []ledger.Decision, err error) {
	err = p.c.call(ctx, "pending", func(ctx context.Context) error { d, err = p.Namespace.Pending(ctx, id, from, most); return err })
	return d, err
}

func (p *probe) Outbox(ctx context.Context, id ledger.Partition, s ledger.Sequence) (d *ledger.Decision, err error) {
	err = p.c.call(ctx, "outbox", func(ctx context.Context) error { d, err = p.Namespace.Outbox(ctx, id, s); return err })
	return d, err
}

func (p *probe) Acknowledge(ctx context.Context, l store.Lease, r store.Receipt) error {
	return p.c.call(ctx, "acknowledge", func(ctx context.Context) error { return p.Namespace.Acknowledge(ctx, l, r) })
}

func (p *probe) ViewPosition(ctx context.Context, id ledger.Partition) (v store.ViewPosition, err error) {
	err = p.c.call(ctx, "view position", func(ctx context.Context) error { v, err = p.Namespace.ViewPosition(ctx, id); return err })
	return v, err
}

func (p *probe) ViewRows(ctx context.Context, id ledger.Partition, ids []ledger.OutputID) (rows map[ledger.OutputID]store.ViewRow, err error) {
	err = p.c.call(ctx, "view rows", func(ctx context.Context) error { rows, err = p.Namespace.ViewRows(ctx, id, ids); return err })
	return rows, err
}

func (p *probe) ApplyViewInput(ctx context.Context, l store.Lease, page *store.ViewPage) error {
	return p.c.call(ctx, "apply", func(ctx context.Context) error { return p.Namespace.ApplyViewInput(ctx, l, page) })
}
