package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/ledger"
)

var fetchedID = [16]byte{0: 1, 15: 2}

func fetch(id [16]byte, p kgo.FetchPartition) kgo.Fetches {
	return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "src", TopicID: id, Partitions: []kgo.FetchPartition{p}}}}}
}

func at(offsets ...int64) []*kgo.Record {
	var out []*kgo.Record
	for _, o := range offsets {
		out = append(out, &kgo.Record{Offset: o})
	}
	return out
}

// I23: a fetch under another topic id returns nothing, whatever the client thought.
func TestFetchOfAnotherTopicID(t *testing.T) {
	positions := positions{0: 0}
	var identity *IdentityError
	got, err := (&Options{}).collect(context.Background(), fetch([16]byte{9}, kgo.FetchPartition{Records: at(0)}), "src", incarnation(fetchedID), positions)
	if !errors.As(err, &identity) || len(got) != 0 || positions[0] != 0 {
		t.Fatalf("%v %v", got, err)
	}
	got, err = (&Options{}).collect(context.Background(), fetch(fetchedID, kgo.FetchPartition{Records: at(0)}), "src", incarnation(fetchedID), positions)
	if err != nil || len(got) != 1 || positions[0] != 1 {
		t.Fatalf("%v %v", got, err)
	}
}

// What a fetch says of a partition that is not read is dropped; records before the position are no accident.
func TestFetchOutsideThePosition(t *testing.T) {
	want := incarnation(fetchedID)
	if got, err := (&Options{}).collect(context.Background(), fetch(fetchedID, kgo.FetchPartition{Partition: 3, Records: at(0)}), "src", want, positions{0: 0}); err != nil || len(got) != 0 {
		t.Fatalf("%v %v", got, err)
	}
	var outside *RangeError
	if _, err := (&Options{}).collect(context.Background(), fetch(fetchedID, kgo.FetchPartition{Records: at(4, 5)}), "src", want, positions{0: 5}); !errors.As(err, &outside) {
		t.Fatalf("error %v", err)
	}
}

// Control records move the position and are never returned (S13).
func TestFetchKeepsMarkersInside(t *testing.T) {
	records := at(2, 3, 7)
	records[1].Attrs = kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Control: true})
	records[2].Attrs = records[1].Attrs
	got, err := (&Options{}).collect(context.Background(), fetch(fetchedID, kgo.FetchPartition{Records: records}), "src", incarnation(fetchedID), positions{0: 1})
	if err != nil || len(got) != 1 {
		t.Fatalf("%v %v", got, err)
	}
	if f := got[0]; f.From != 1 || f.Next != 8 || !cmp.Equal(values(f.Records), []string{"2="}) {
		t.Fatalf("%+v", f)
	}
}

func TestFetchErrors(t *testing.T) {
	var outside *RangeError
	var identity *IdentityError
	for _, c := range []struct {
		in error
		is func(error) bool
	}{
		{kerr.OffsetOutOfRange, func(err error) bool { return errors.As(err, &outside) }},
		{&kgo.ErrDataLoss{Topic: "src"}, func(err error) bool { return errors.As(err, &outside) }},
		{fmt.Errorf("unable to decompress batch: %w", &kgo.ErrDecompressTooLarge{Topic: "src", Offset: 3, NextOffset: 5}), func(err error) bool {
			return errors.Is(err, ErrUnreadable) && strings.Contains(err.Error(), "partition 0 offsets 3..4") && !errors.Is(err, ErrUnavailable)
		}},
		{kerr.UnknownTopicID, func(err error) bool { return errors.As(err, &identity) }},
		{kgo.ErrClientClosed, func(err error) bool { return errors.Is(err, ErrClosed) }},
		{&kgo.ErrGroupSession{Err: errors.New("dial tcp: refused")}, func(err error) bool { return errors.Is(err, ErrSession) }},
		{&kgo.ErrGroupSession{Err: kerr.GroupAuthorizationFailed}, func(err error) bool { return errors.Is(err, ErrRefused) }},
		{kerr.TopicAuthorizationFailed, func(err error) bool { return errors.Is(err, ErrRefused) }},
		{kerr.UnknownServerError, func(err error) bool { return errors.Is(err, ErrUnavailable) }},
		{context.DeadlineExceeded, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
	} {
		_, err := (&Options{}).collect(context.Background(), fetch(fetchedID, kgo.FetchPartition{Err: c.in}), "src", incarnation(fetchedID), positions{0: ledger.Frontier(1)})
		if err == nil || !c.is(err) {
			t.Errorf("%v became %v", c.in, err)
		}
	}
}

// Of several errors in one poll the one that comes only once is told: a partition that cannot be read would otherwise stand still
// without a word behind what the next poll meets again.
func TestFetchTellsTheGravestError(t *testing.T) {
	bomb := fmt.Errorf("unable to decompress batch: %w", &kgo.ErrDecompressTooLarge{Topic: "src", Offset: 3, NextOffset: 5})
	passing, want := error(kerr.UnknownServerError), incarnation(fetchedID)
	var outside *RangeError
	for name, c := range map[string]struct {
		in []error
		is func(error) bool
	}{
		"a bomb behind what passes":       {[]error{passing, bomb}, func(err error) bool { return errors.Is(err, ErrUnreadable) }},
		"a bomb before what passes":       {[]error{bomb, passing}, func(err error) bool { return errors.Is(err, ErrUnreadable) }},
		"lost history behind a bomb":      {[]error{passing, bomb, kerr.OffsetOutOfRange}, func(err error) bool { return errors.As(err, &outside) && outside.Partition == 2 }},
		"the first of two that are alike": {[]error{kerr.OffsetOutOfRange, kerr.OffsetOutOfRange}, func(err error) bool { return errors.As(err, &outside) && outside.Partition == 0 }},
	} {
		fetches := fetch(fetchedID, kgo.FetchPartition{})
		partitions := make([]kgo.FetchPartition, len(c.in), len(c.in)+1)
		for p, err := range c.in {
			partitions[p] = kgo.FetchPartition{Partition: int32(p), Err: err}
		}
		fetches[0].Topics[0].Partitions = append(partitions, kgo.FetchPartition{Partition: 9, Records: at(0)})
		got, err := (&Options{}).collect(context.Background(), fetches, "src", want, positions{0: 0, 1: 0, 2: 0, 9: 0})
		if !c.is(err) || len(got) != 1 || got[0].Partition != 9 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
