package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
)

// Topic asks the source topic how far it goes. Reader makes a reader of it, which Topic closes.
type Topic struct {
	Admin       *broker.Admin
	Reader      func() (*broker.Reader, error)
	Name        string
	Incarnation string
}

// How long the source topic is asked in all, for the time of its oldest unprocessed record in particular, and of how many
// partitions that is read: those that are behind most.
const (
	topicBudget  = 5 * time.Second
	oldestBudget = 2 * time.Second
	oldestMost   = 32
)

var errFound = errors.New("found")

// look fills in ends and lags, nothing if it fails.
func (t *Topic) look(ctx context.Context, p *Progress) error {
	ctx, cancel := context.WithTimeout(ctx, topicBudget)
	defer cancel()
	if err := t.Answers(ctx); err != nil {
		return err
	}
	ends, err := t.Admin.Ends(ctx, t.Name)
	if err != nil {
		return err
	}
	stable, err := t.Admin.Stable(ctx, t.Name)
	if err != nil {
		return err
	}
	if len(ends) != len(p.Partitions) || len(stable) != len(ends) {
		return fmt.Errorf("topic %s has %d partitions and the namespace %d", t.Name, len(ends), len(p.Partitions))
	}
	var sum int64
	var zero float64
	for i := range p.Partitions {
		one := &p.Partitions[i]
		end := int64(ends[i])
		records := max(0, end-one.Frontier)
		one.End, one.Lag.Records = &end, &records
		if records == 0 {
			one.Lag.Seconds = &zero
		}
		one.Held = records > 0 && int64(stable[i]) <= one.Frontier
		sum += records
	}
	p.Lag.Records = &sum
	t.oldest(ctx, p, stable)
	return nil
}

// oldest reads the first unprocessed record of the partitions that are behind. What cannot be read in time stays unknown.
func (t *Topic) oldest(ctx context.Context, p *Progress, stable []ledger.Offset) {
	var behind []*Partition
	for i := range p.Partitions {
		if *p.Partitions[i].Lag.Records > 0 {
			behind = append(behind, &p.Partitions[i])
		}
	}
	slices.SortStableFunc(behind, func(a, b *Partition) int { return int(min(max(*b.Lag.Records-*a.Lag.Records, -1), 1)) })
	if len(behind) > 0 {
		t.read(ctx, behind[:min(len(behind), oldestMost)], stable)
	}
	var oldest float64
	known := 0
	for _, one := range behind {
		if one.Lag.Seconds != nil {
			known++
			oldest = max(oldest, *one.Lag.Seconds)
		}
	}
	if known > 0 || len(behind) == 0 {
		p.Lag.Seconds, p.Lag.LeastSeconds = &oldest, known < len(behind)
	}
}

func (t *Topic) read(ctx context.Context, behind []*Partition, stable []ledger.Offset) {
	r, err := t.Reader()
	if err != nil {
		return
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, oldestBudget)
	defer cancel()
	for _, one := range behind {
		var at int64
		_, err := r.ReadTo(ctx, ledger.Partition(one.Partition), ledger.Frontier(one.Frontier), ledger.Frontier(stable[one.Partition]), func(rec ledger.SourceRecord) error {
			at = rec.Timestamp
			return errFound
		})
		if !errors.Is(err, errFound) || at <= 0 {
			continue
		}
		age := max(0, time.Since(time.UnixMilli(at)).Seconds())
		one.Lag.Seconds = &age
	}
}
