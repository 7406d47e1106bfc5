package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"amends/internal/ledger"
	"amends/internal/store"
)

// resolve reads the row under its lock and says what an unknown commit did (S12).
func (p *Partition) resolve(ctx context.Context) (Progress, error) {
	owned, err := p.store.Observe(ctx, p.id)
	if err != nil {
		return p.unresolved(err)
	}
	same := owned.Token.Epoch == p.token.Epoch && owned.Token.Nonce == p.token.Nonce
	switch {
	case owned.Token.Server != p.token.Server: // a promotion, which may have lost this claim too: only a new claim can tell
		p.log.Warn("the database server is another one", "namespace", p.cfg.Namespace, "partition", p.id, "was", p.token.Server, "is", owned.Token.Server)
		p.phase = claiming
		return Progress{}, nil
	case !same:
		return Progress{}, fmt.Errorf("resolve commit of partition %d: epoch %d is installed, not %d: %w", p.id, owned.Token.Epoch, p.token.Epoch, store.ErrFence)
	case owned.Frontier == p.batch.Next && owned.Sequence == p.batch.NextSequence:
		p.log.Info("unknown commit resolved: committed", "namespace", p.cfg.Namespace, "partition", p.id, "next_offset", p.batch.Next)
		return p.acknowledge(ctx)
	case owned.Frontier == p.batch.Expected && owned.Sequence == p.batch.FirstSequence:
		p.log.Info("unknown commit resolved: not committed", "namespace", p.cfg.Namespace, "partition", p.id, "next_offset", p.batch.Next)
		p.phase = committing // the same bytes
		return p.failed(fmt.Errorf("commit partition %d offsets %d..%d: %w", p.id, p.batch.Expected, p.batch.Next, p.last))
	}
	return Progress{}, fmt.Errorf("resolve commit of partition %d: frontier %d sequence %d are neither those before (%d, %d) nor after (%d, %d): %w", p.id,
		owned.Frontier, owned.Sequence, p.batch.Expected, p.batch.FirstSequence, p.batch.Next, p.batch.NextSequence, ErrIntegrity)
}

// review reads the row of a partition that has had nothing to commit for a while: a promotion that lost a committed tail
// would otherwise show at the next record only, and so would the loss of the ownership.
func (p *Partition) review(ctx context.Context) (Progress, error) {
	owned, err := p.store.Observe(ctx, p.id)
	switch {
	case err != nil:
		return p.retry(fmt.Errorf("review partition %d: %w", p.id, err))
	case owned.Token.Server != p.token.Server:
		return p.retry(fmt.Errorf("review partition %d: %w", p.id, store.ErrServerChanged))
	case owned.Token != p.token:
		return Progress{}, fmt.Errorf("review partition %d: epoch %d is installed, not %d: %w", p.id, owned.Token.Epoch, p.token.Epoch, store.ErrFence)
	case owned.Frontier != p.at.Frontier || owned.Sequence != p.at.Sequence:
		return Progress{}, fmt.Errorf("review partition %d: frontier %d sequence %d, committed were %d, %d: %w", p.id,
			owned.Frontier, owned.Sequence, p.at.Frontier, p.at.Sequence, ErrIntegrity)
	}
	p.known = p.clock()
	p.done()
	return Progress{Idle: true, Wait: idleLook}, nil
}

// unresolved handles a row that cannot be read: until the budget ends while the service is away, three times otherwise.
func (p *Partition) unresolved(err error) (Progress, error) {
	kind := classify(err)
	if kind == terminal {
		return Progress{}, fmt.Errorf("resolve commit of partition %d: %w", p.id, err)
	}
	if kind == moved {
		p.phase = claiming
		return Progress{}, nil
	}
	if kind != away {
		p.tries++
	}
	if p.tries >= MaxAttempts || p.clock().Sub(p.began) >= RetryBudget {
		return Progress{}, fmt.Errorf("resolve commit of partition %d offsets %d..%d: %w: %w; the commit: %w", p.id, p.batch.Expected, p.batch.Next, ErrUnresolved, err, store.Resolved(p.last))
	}
	p.waits++ // so that done says that it is back
	p.ready.waits(wait{"database", p.id}, err)
	return Progress{Wait: p.backoff()}, nil
}

// claim installs a new epoch after the server became another one; the caller's assignment still stands, as Revoked
// waits for this step.
func (p *Partition) claim(ctx context.Context) (Progress, error) {
	owned, err := p.claimRow(ctx, p.id)
	if err != nil {
		if kind := classify(err); kind == unknown || kind == moved {
			return p.failed(fmt.Errorf("claim partition %d: %w", p.id, err)) // a fresh claim; an extra epoch is harmless
		}
		return p.retry(fmt.Errorf("claim partition %d: %w", p.id, err))
	}
	p.log.Info("partition claimed again", "namespace", p.cfg.Namespace, "partition", p.id, "epoch", owned.Token.Epoch, "frontier", owned.Frontier)
	p.own(owned)
	p.done()
	p.in.restart(owned.Frontier)
	p.wakeUp()
	return Progress{}, nil
}

// claimRow makes one claim. After a lost reply it reads the row: with this attempt's nonce in it the claim is its own,
// otherwise the outcome stays unknown and the caller claims afresh while its assignment is valid (S12).
func (s *shared) claimRow(ctx context.Context, p ledger.Partition) (store.Owned, error) {
	owned, err := s.store.Claim(ctx, p)
	if !errors.Is(err, store.ErrCommitUnknown) || owned.Token.Nonce == (store.Nonce{}) {
		return owned, err
	}
	if row, seen := s.store.Observe(ctx, p); seen == nil && row.Token == owned.Token {
		return row, nil
	}
	return store.Owned{}, err
}

// retry decides what follows an error of a call that changed nothing.
func (p *Partition) retry(err error) (Progress, error) {
	switch classify(err) {
	case away:
		if p.tries > 0 && p.clock().Sub(p.began) >= RetryBudget {
			return p.failed(fmt.Errorf("%w; then the budget ended: %v", p.last, err)) // no silence of the server's: it had answered
		}
		return p.wait("database", err), nil
	case moved:
		p.drop()
		p.phase = claiming
		return Progress{}, nil
	case fenced, terminal:
		return Progress{}, err
	}
	return p.failed(err)
}

// failed counts a definite failure: at most three attempts within the budget (S12).
func (p *Partition) failed(err error) (Progress, error) {
	p.tries++
	p.last = err
	if p.tries >= MaxAttempts || p.clock().Sub(p.began) >= RetryBudget {
		if errors.Is(err, store.ErrCommitUnknown) {
			err = store.Resolved(err) // it was resolved: not committed
		}
		return Progress{}, fmt.Errorf("%w after %d attempts: %w", ErrRetries, p.tries, err)
	}
	p.log.Warn("operation failed, trying again", "namespace", p.cfg.Namespace, "partition", p.id, "attempt", p.tries, "error", err)
	return Progress{Wait: p.backoff()}, nil
}

func (p *Partition) backoff() time.Duration {
	if p.tries > 1 {
		return SecondWait
	}
	return FirstWait
}

// wait lets a service that is away come back: nothing was sent, so no attempt is counted and the budget starts anew.
func (p *Partition) wait(service string, err error) Progress {
	p.ready.waits(wait{service, p.id}, err)
	p.waits++
	p.tries, p.began = 0, time.Time{}
	return Progress{Wait: min(FirstWait<<min(p.waits-1, 4), awayWait)}
}

// done ends an operation: what it needed is there.
func (p *Partition) done() {
	if p.waits > 0 || p.tries > 0 {
		p.ready.gone(p.id)
	}
	p.tries, p.waits, p.began, p.last = 0, 0, time.Time{}, nil
}

// Frontier returns the position after the last acknowledged commit.
func (p *Partition) Frontier() ledger.Frontier { return p.at.Frontier }
