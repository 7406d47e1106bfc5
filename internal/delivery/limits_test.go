package delivery

import (
	"log/slog"
	"testing"
	"time"

	"amends/internal/store"
)

// I22: the pages of all partitions together are bounded, however many a topic has; a few have their whole page each.
func TestI22PagesOfManyPartitions(t *testing.T) {
	t.Parallel()
	for partitions, want := range map[int32][3]int{ // outputs and bytes of a relay's page, outputs of a view's
		0: {10_000, 4 << 20, 250_000}, 1: {10_000, 4 << 20, 250_000}, 4: {10_000, 4 << 20, 250_000}, 64: {10_000, 4 << 20, 15_625}, 1_024: {976, 256 << 10, 976},
	} {
		topic := Topic{Partitions: partitions}
		r, v := RelayOptions{Topic: topic}.withDefaults(), ViewOptions{Topic: topic}.withDefaults()
		if got := [3]int{r.PageOutputs, r.PageBytes, v.PageOutputs}; got != want {
			t.Errorf("of %d partitions one has pages of %v, want %v", partitions, got, want)
		}
		if v.PageRows > v.PageOutputs {
			t.Errorf("of %d partitions one has pages of %d rows and %d outputs", partitions, v.PageRows, v.PageOutputs)
		}
	}
}

// I22: relays with nothing to do ask the database no more than some 2,000 times a second, however many partitions a topic has.
func TestI22IdleRelaysOfManyPartitions(t *testing.T) {
	t.Parallel()
	for partitions, want := range map[int32]time.Duration{1: 20 * time.Millisecond, 40: 20 * time.Millisecond, 100: 50 * time.Millisecond, 1_024: 512 * time.Millisecond} {
		s := newService(store.Relay, Topic{Partitions: partitions}, nil, slog.New(slog.DiscardHandler), nil, nil)
		var idle growing
		for range 100 {
			idle.next(idleFirst, s.quiet)
		}
		if got := idle.next(idleFirst, s.quiet); got != want {
			t.Errorf("of %d partitions one waits %v, want %v", partitions, got, want)
		}
	}
}
