package memory

import (
	"context"
	"fmt"
	"math"
	"time"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
)

// Bind binds the namespace to its output topic once (S9). The same binding again succeeds; another is ErrBinding; what
// S9 forbids is ErrBindRefused. Both position rows of every partition begin at zero.
func (n *Namespace) Bind(_ context.Context, o manifest.Output) error {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	if n.s.output != nil {
		if *n.s.output != o {
			return fmt.Errorf("bind output: bound to %s (%s): %w", n.s.output.Topic, n.s.output.Incarnation, store.ErrBinding)
		}
		return nil
	}
	if err := n.bindable(o); err != nil {
		return fmt.Errorf("bind output %s: %w", o.Topic, err)
	}
	n.s.output = &o
	for _, s := range n.s.partitions {
		s.relay, s.view = &store.RelayPosition{}, &store.ViewPosition{Cause: -1}
	}
	return nil
}

func (n *Namespace) bindable(o manifest.Output) error {
	if o.Partitions != n.s.cfg.Partitions {
		return fmt.Errorf("it has %d partitions, the source %d: %w", o.Partitions, n.s.cfg.Partitions, store.ErrBindRefused)
	}
	if o.Topic == n.s.topic {
		return fmt.Errorf("it is the source topic: %w", store.ErrBindRefused)
	}
	for name, other := range n.db.namespaces {
		if other.cfg.SourceIncarnation == o.Incarnation {
			return fmt.Errorf("it is the source of namespace %q: %w", name, store.ErrBindRefused)
		}
		if other.output != nil && other.output.Incarnation == o.Incarnation {
			return fmt.Errorf("it is the output of namespace %q: %w", name, store.ErrBindRefused)
		}
	}
	for p, s := range n.s.partitions {
		if len(s.receipts) > 0 || len(s.rows) > 0 || len(s.violations) > 0 || s.relay != nil || s.view != nil {
			return fmt.Errorf("partition %d has delivered without a binding: %w", p, store.ErrBindRefused)
		}
	}
	return nil
}

// Binding returns the output the namespace is bound to, nil if none.
func (n *Namespace) Binding(context.Context) (*manifest.Output, error) {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	if n.s.output == nil {
		return nil, nil
	}
	o := *n.s.output
	return &o, nil
}

// bound returns a partition that has its position rows; the caller holds the mutex.
func (n *Namespace) bound(p ledger.Partition) (*partition, error) {
	s, err := n.partition(p)
	if err == nil && s.relay == nil {
		err = fmt.Errorf("partition %d: not bound: %w", p, store.ErrBinding)
	}
	return s, err
}

// AcquireService takes the lease of a role and partition for ttl: ErrServiceBusy while another holder's has not expired.
// It installs the next term and a new nonce in the role's position row, which fences the former holder (S9).
func (n *Namespace) AcquireService(_ context.Context, role store.Role, p ledger.Partition, holder string, ttl time.Duration) (store.Lease, error) {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	s, err := n.bound(p)
	if err != nil {
		return store.Lease{}, fmt.Errorf("acquire %s: %w", role, err)
	}
	row, now := s.leases[role], n.db.now()
	if row != nil && row.holder != "" && row.holder != holder && now.Before(row.expires) {
		return store.Lease{}, fmt.Errorf("acquire %s of partition %d: held by %s: %w", role, p, row.holder, store.ErrServiceBusy)
	}
	term, nonce := &s.relay.Term, &s.relay.Nonce
	if role == store.View {
		term, nonce = &s.view.Term, &s.view.Nonce
	}
	if *term == math.MaxInt64 {
		return store.Lease{}, fmt.Errorf("acquire %s of partition %d: term: %w", role, p, store.ErrExhausted)
	}
	*term++
	*nonce = n.db.newNonce()
	s.leases[role] = &leaseRow{holder: holder, term: *term, expires: now.Add(ttl)}
	return store.Lease{Role: role, Holder: holder, Term: *term, Nonce: *nonce, Partition: p}, nil
}

// RenewServices extends the leases that holder still has to ttl from now, and returns those that it no longer has.
func (n *Namespace) RenewServices(_ context.Context, holder string, leases []store.Lease, ttl time.Duration) ([]store.Lease, error) {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	var lost []store.Lease
	for _, l := range leases {
		row := n.leaseRow(l)
		if row == nil || row.holder != holder {
			lost = append(lost, l)
			continue
		}
		row.expires = n.db.now().Add(ttl)
	}
	return lost, nil
}

// ReleaseService gives a lease up so that a standby need not wait; one already lost is left alone.
func (n *Namespace) ReleaseService(_ context.Context, l store.Lease) error {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	if row := n.leaseRow(l); row != nil && row.holder == l.Holder {
		row.holder, row.expires = "", time.Time{}
	}
	return nil
}

func (n *Namespace) leaseRow(l store.Lease) *leaseRow {
	s, err := n.partition(l.Partition)
	if err != nil {
		return nil
	}
	row := s.leases[l.Role]
	if row == nil || row.term != l.Term {
		return nil
	}
	return row
}

// RelayPosition returns the relay position row under its lock: ErrBinding before the binding.
func (n *Namespace) RelayPosition(_ context.Context, p ledger.Partition) (store.RelayPosition, error) {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	s, err := n.bound(p)
	if err != nil {
		return store.RelayPosition{}, fmt.Errorf("read relay position: %w", err)
	}
	return *s.relay, nil
}

// LastReceipt returns the latest receipt of a partition, nil if there is none.
func (n *Namespace) LastReceipt(_ context.Context, p ledger.Partition) (*store.Receipt, error) {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	s, err := n.partition(p)
	if err != nil {
		return nil, fmt.Errorf("read last receipt: %w", err)
	}
	if len(s.receipts) == 0 {
		return nil, nil
	}
	r := s.receipts[len(s.receipts)-1]
	return &r, nil
}

// Pending returns whole decisions with outputs from the one that holds from.Sequence on, as many as maxOutputs outputs
// allow and at least one if there is any.
func (n *Namespace) Pending(_ context.Context, p ledger.Partition, from store.RelayPosition, maxOutputs int) ([]ledger.Decision, error) {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	s, err := n.partition(p)
	if err != nil {
		return nil, fmt.Errorf("read pending outputs: %w", err)
	}
	var pending []ledger.Decision
	outputs := 0
	for i := s.holding(from.Sequence); i < len(s.journal); i++ {
		d := &s.journal[i]
		if len(d.Changes) == 0 {
			continue
		}
		outputs += len(d.Changes)
		if len(pending) > 0 && outputs > maxOutputs {
			break
		}
		pending = append(pending, store.CloneDecision(d))
	}
	return pending, nil
}

// Outbox returns the decision that holds a sequence, nil if none does.
func (n *Namespace) Outbox(_ context.Context, p ledger.Partition, sequence ledger.Sequence) (*ledger.Decision, error) {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	s, err := n.partition(p)
	if err != nil {
		return nil, fmt.Errorf("read outbox: %w", err)
	}
	i := s.holding(sequence)
	if i == len(s.journal) || sequence < 0 {
		return nil, nil
	}
	d := store.CloneDecision(&s.journal[i])
	return &d, nil
}

// Acknowledge stores a receipt and moves the relay position (S9). The last receipt again is idempotent; one that
// conflicts, or is for later work, is ErrProtocol; another term or nonce is ErrFence.
func (n *Namespace) Acknowledge(_ context.Context, l store.Lease, r store.Receipt) error {
	if err := store.CheckReceipt(r); err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	s, err := n.bound(r.Partition)
	if err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	if l.Role != store.Relay || l.Partition != r.Partition || l.Term != s.relay.Term || l.Nonce != s.relay.Nonce {
		return fmt.Errorf("acknowledge partition %d: term %d: %w", r.Partition, l.Term, store.ErrFence)
	}
	for _, stored := range s.receipts {
		if stored == r {
			return nil
		}
	}
	if r.First != s.relay.Sequence || ledger.Frontier(r.Offset) < s.relay.Output || r.Next > s.owned.Sequence {
		return fmt.Errorf("acknowledge partition %d: sequences %d to %d at %d, stored next %d at %d, outbox to %d: %w",
			r.Partition, r.First, r.Next, r.Offset, s.relay.Sequence, s.relay.Output, s.owned.Sequence, store.ErrProtocol)
	}
	s.receipts = append(s.receipts, r)
	s.relay.Sequence, s.relay.Output = r.Next, r.End()
	s.relay.Source = s.journal[s.holding(r.Next-1)].Offset
	return nil
}
