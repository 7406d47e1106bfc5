package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/lease"
	"amends/internal/ledger"
	"amends/internal/sim/fault"
	"amends/internal/sim/serial"
	"amends/internal/store"
)

// post is one process that relays or materializes one partition: a lease and a delivery.Stepper, driven by hand as
// lease.Keeper and delivery.Service drive them.
type post struct {
	actor
	role      store.Role
	partition ledger.Partition
	holder    string
	lease     store.Lease
	server    store.Server // when the lease was taken
	stepper   delivery.Stepper
	renewed   time.Duration
	seen      int64 // what the world had done when the last step had nothing to do
	failures  int
	err       error
	leased    bool
}

func (w *World) newPost(id int, role store.Role, p ledger.Partition) *post {
	w.holders++
	return &post{actor: actor{w: w, id: id}, role: role, partition: p, holder: fmt.Sprintf("%s-%d-%d", role, id, w.holders), seen: -1}
}

// turn takes the lease, or renews it and makes one step.
func (x *post) turn() {
	ctx, w := context.Background(), x.w
	if !x.leased {
		x.take(ctx)
		return
	}
	if w.now-x.renewed >= lease.Renew {
		x.renewed = w.now
		lost, err := port{&x.actor}.RenewServices(ctx, x.holder, []store.Lease{x.lease}, lease.TTL)
		now, _ := w.db.Server(ctx)
		switch {
		case err == nil && len(lost) > 0:
			x.stepper.Close()
			x.quit(ctx, fmt.Errorf("the lease is lost: %w", store.ErrFence))
			return
		case now != x.server:
			x.stepper.Close()
			x.quit(ctx, fmt.Errorf("the server is another one: %w", store.ErrServerChanged))
			return
		}
	}
	w.waited = 0
	before := x.signal()
	pr, err := x.stepper.Step(ctx)
	switch {
	case err == nil && pr.Waiting != "":
		x.readyAt = w.now + 100*time.Millisecond
	case err == nil && x.rests(&pr):
		x.seen = before
	case err == nil:
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, broker.ErrUnavailable):
		x.readyAt = w.now + 100*time.Millisecond
	default:
		x.stepper.Close()
		x.quit(ctx, err)
	}
}

// rests reports whether the step had nothing to do.
func (x *post) rests(pr *delivery.Progress) bool {
	if x.role == store.Relay {
		return pr.Idle
	}
	b := x.w.books[x.partition]
	return b.Folded == x.w.output.Log(x.partition).End() || x.w.stuck(b)
}

// stuck reports whether the output topic ends inside a repair, of which the view waits for the rest.
func (w *World) stuck(b *serial.Books) bool {
	return b.Published > 0 && !b.Part.Outputs[b.Published-1].Last
}

// signal changes when there may be something to do.
func (x *post) signal() int64 {
	b := x.w.books[x.partition]
	if x.role == store.Relay {
		return x.w.effects<<32 | int64(b.Sequence)
	}
	return x.w.effects<<32 | int64(x.w.output.Log(x.partition).End())
}

// take tries to get the lease, as lease.Keeper.
func (x *post) take(ctx context.Context) {
	w := x.w
	l, err := port{&x.actor}.AcquireService(ctx, x.role, x.partition, x.holder, lease.TTL)
	switch {
	case err == nil:
	case errors.Is(err, store.ErrServiceBusy), errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrCommitUnknown), errors.Is(err, store.ErrServerChanged):
		x.readyAt, x.failures = w.now+lease.Retry, 0
		return
	case x.failures < 2:
		x.readyAt = w.now + 100*time.Millisecond
		x.failures++
		return
	default:
		x.fail(err)
		return
	}
	x.lease, x.leased, x.failures, x.renewed, x.seen = l, true, 0, w.now, -1
	x.server, _ = w.db.Server(ctx)
	if before := w.holding[x.role][x.partition]; before != nil && before != x && before.leased && !before.retired {
		w.count(fault.Takeover)
	}
	w.holding[x.role][x.partition] = x
	t := delivery.Topic{Topics: client{&x.actor}, Name: serial.OutputName, Incarnation: w.history.Manifest.Output.Incarnation, Partitions: w.history.Manifest.Output.Partitions,
		NewProducer: func() (delivery.Producer, error) {
			var send delivery.Producer = &producer{client: client{&x.actor}, want: w.history.Manifest.Output.Incarnation}
			if w.without.producer != nil {
				send = w.without.producer(send)
			}
			return send, nil
		},
		NewReader: func() (delivery.Reader, error) {
			return &reader{client: client{&x.actor}, topic: w.output, want: w.history.Manifest.Output.Incarnation}, nil
		}}
	if x.role == store.Relay {
		x.stepper = delivery.NewRelayStepper(delivery.RelayOptions{Config: w.history.Manifest.Config, Store: port{&x.actor}, Topic: t, PageOutputs: w.page, Serial: true, Pause: w.pause}, l)
	} else {
		x.stepper = delivery.NewViewStepper(delivery.ViewOptions{Config: w.history.Manifest.Config, Store: port{&x.actor}, Topic: t, PageOutputs: w.page, Pause: w.pause}, l)
	}
}

// quit gives the lease up and ends the process, or takes it again where the server became another one (S12).
func (x *post) quit(ctx context.Context, err error) {
	if !errors.Is(err, store.ErrFence) {
		_ = port{&x.actor}.ReleaseService(ctx, x.lease)
	}
	x.leased = false
	now, _ := x.w.db.Server(ctx)
	if errors.Is(err, store.ErrServerChanged) || now != x.server {
		return
	}
	x.fail(err)
}

func (x *post) fail(err error) { x.err = err }

// stop ends the process in order.
func (x *post) stop() {
	if x.leased {
		x.stepper.Close()
		_ = port{&x.actor}.ReleaseService(context.Background(), x.lease)
	}
	x.leased, x.retired = false, true
}

// end is the end of a process whose role failed.
func (x *post) end() {
	x.leased, x.retired = false, true
	x.w.ended(string(x.role), x.err)
	if errors.Is(x.err, store.ErrFence) && x.installed() {
		x.w.violate("I21", "%s %d retires as fenced under the installed term %d: %v", x.role, x.id, x.lease.Term, x.err)
	}
}

// installed reports whether the post's term and nonce are those in the position row.
func (x *post) installed() bool {
	ctx := context.Background()
	if x.role == store.Relay {
		pos, err := x.w.ns.RelayPosition(ctx, x.partition)
		return err == nil && pos.Term == x.lease.Term && pos.Nonce == x.lease.Nonce
	}
	pos, err := x.w.ns.ViewPosition(ctx, x.partition)
	return err == nil && pos.Term == x.lease.Term && pos.Nonce == x.lease.Nonce
}
