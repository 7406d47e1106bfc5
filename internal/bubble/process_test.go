package bubble

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/roles"
	"amends/internal/store"
	"amends/internal/worker"
)

// restart is how soon a process that ended is started again.
const restart = 500 * time.Millisecond

// proc is a process that is started again whenever it ends.
type proc struct {
	w     *world
	id    int
	name  string
	roles []roles.Role

	mu    sync.Mutex // a leaf; guards the rest
	life  *life      // nil while it is down
	again time.Duration
	born  int
}

// life is one run of a process.
type life struct {
	w      *world
	p      *proc
	name   string
	net    *network
	port   *port
	paused *valve
	cancel context.CancelFunc
	done   chan struct{} // closed when everything of it has ended
	gone   chan struct{} // closed when it was killed
	once   sync.Once
	told   atomic.Bool
	err    error
}

// supervise starts the process until no process is to be started.
func (p *proc) supervise() {
	for {
		l, err := p.start()
		if err != nil {
			p.w.violate("harness", "start %s: %v", p.name, err)
			return
		}
		select {
		case <-p.w.ending: // finish may have looked for it before it was there
			l.ask()
		default:
		}
		select {
		case <-l.done:
		case <-l.gone:
		}
		p.mu.Lock()
		p.life = nil
		again := p.again
		p.again = restart
		p.mu.Unlock()
		select {
		case <-p.w.ending:
			return
		default:
		}
		select {
		case <-time.After(again):
		case <-p.w.ending:
			return
		}
	}
}

func (p *proc) current() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

// rest makes the next start later.
func (p *proc) rest(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again = max(d, restart)
}

// start begins a new life: production's roles over a network and a connection of its own.
func (p *proc) start() (*life, error) {
	w := p.w
	p.mu.Lock()
	p.born++
	l := &life{w: w, p: p, name: fmt.Sprintf("%s.%d", p.name, p.born), paused: newValve(), done: make(chan struct{}), gone: make(chan struct{})}
	p.mu.Unlock()
	l.net = newNetwork(w.stack, func() { w.struck("reply really lost") })
	l.port = &port{w: w, l: l}
	log := w.logger(l.name)
	options := w.broker(l.net, l.name, log)
	admin, err := broker.Open(options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	w.tell("starts", l.name)
	w.running.Go(func() {
		defer close(l.done)
		l.err = roles.Run(ctx, roles.Options{Manifest: w.m, Namespace: l.port, Topics: admin, Broker: options, Holder: l.name, Server: l.server, Logger: log, Roles: p.roles,
			GroupProtocol: w.plan.protocol})
		admin.Close()
		cancel()
		w.ended(l)
	})
	p.mu.Lock()
	p.life = l
	p.mu.Unlock()
	return l, nil
}

func (l *life) server(ctx context.Context) (store.Server, error) {
	return read(ctx, l.port, reading, func() (store.Server, error) { return l.w.db.Server(ctx) })
}

// kill ends the process as SIGKILL does: nothing of it reaches anybody any more.
func (l *life) kill() {
	l.once.Do(func() {
		close(l.gone)
		go l.net.refuse(true) // what waits for a reply of the network may hold locks of its own
		l.paused.set(false)
		l.net.flow.set(false)
		l.cancel()
	})
}

// dead reports whether the process was killed.
func (l *life) dead() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// ask is SIGTERM.
func (l *life) ask() {
	l.told.Store(true)
	l.cancel()
}

// ended judges how a process ended: integrity stops need a cause, an end that was asked for is no error.
func (w *world) ended(l *life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := l.err
	var identity *broker.IdentityError
	var outside *broker.RangeError
	switch {
	case l.dead():
		w.say("killed", l.name)
		return
	case err == nil:
		w.say("ends", l.name)
		if !l.told.Load() {
			w.broken("I21", "%s ends without an error, and was not asked to", l.name)
		}
		return
	}
	w.say("ends by an error", l.name)
	if w.log != nil {
		fmt.Fprintf(w.log, "%10v       %s: %v\n", time.Since(w.began), l.name, err)
	}
	named := errors.As(err, &identity) || errors.As(err, &outside)
	stop := named || errors.Is(err, worker.ErrIntegrity) || errors.Is(err, store.ErrIntegrity) || errors.Is(err, store.ErrProtocol) || errors.Is(err, broker.ErrRefused)
	switch {
	case stop && w.recreated == "":
		w.broken("stop", "%s ends with an integrity stop and nothing is wrong: %v", l.name, err)
	case stop:
		w.count("other topic noticed")
		w.noticed[l.p.name] = true
	case errors.Is(err, store.ErrFence):
		w.count("ended as fenced")
	case errors.Is(err, worker.ErrUnresolved), errors.Is(err, delivery.ErrUnresolved):
		w.count("ended unresolved")
	case errors.Is(err, store.ErrExhausted):
		w.broken("stop", "%s ends: %v", l.name, err)
	default:
		w.count("ended by another error")
	}
}

// expire removes the members of the source group whose process has been gone for a session's length. The broker does that
// itself, but for a member that died while its join was waiting: the in-process broker gives that one its share and never
// looks after it again.
func (w *world) expire() {
	group, gone := worker.GroupID(w.m.Config.Namespace), map[string]time.Time{}
	for {
		select {
		case <-time.After(time.Second):
		case <-w.ending:
			return
		}
		info := w.cluster.GroupInfo(group)
		if info == nil {
			continue
		}
		for _, m := range info.Members {
			since, ok := gone[m.MemberID]
			switch {
			case w.lives(m.ClientID):
			case !ok:
				gone[m.MemberID] = time.Now()
			case time.Since(since) > broker.SessionTimeout:
				w.author.remove(group, m.MemberID)
			}
		}
	}
}

// lives reports whether a process of that name runs.
func (w *world) lives(name string) bool {
	for _, p := range w.procs {
		if l := p.current(); l != nil && l.name == name && !l.dead() {
			return true
		}
	}
	return false
}
