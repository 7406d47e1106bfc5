package sim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/sim/fault"
	"amends/internal/sim/serial"
	"amends/internal/sim/topic"
)

var (
	errBrokerAway  = fmt.Errorf("dial: refused: %w", broker.ErrUnavailable)
	errSendUnknown = fmt.Errorf("no reply: %w", broker.ErrUnknownOutcome)
)

// client is an actor's connection to the broker.
type client struct{ *actor }

// look is what all reads have in common: an error where the broker is away.
func (c client) look(what string) error {
	w := c.w
	w.say(what, int64(c.id), 0)
	if c.retired {
		w.violate("I17", "%s by an actor that has ended", what)
	}
	if c.killed {
		panic(crash{c.actor})
	}
	if w.now < w.brokerBack {
		return errBrokerAway
	}
	switch w.trouble(readWays) {
	case refused, unavailable:
		w.count(fault.Unavailable)
		return errBrokerAway
	case crashBefore:
		w.count(fault.CrashBefore)
		panic(crash{c.actor})
	case between:
		w.interleave(c.actor, row{role: "topic"})
	}
	return nil
}

// Topic is what worker, delivery and verify ask of an administrator.
func (c client) Topic(_ context.Context, name string) (broker.Topic, error) {
	if err := c.look("topic"); err != nil {
		return broker.Topic{}, err
	}
	return c.w.topic(name).Describe(), nil
}

// Incarnation is delivery.Topics'.
func (c client) Incarnation(_ context.Context, name string) (string, error) {
	if err := c.look("incarnation"); err != nil {
		return "", err
	}
	return c.w.topic(name).Incarnation(), nil
}

// Ends is delivery.Topics'.
func (c client) Ends(_ context.Context, name string) ([]ledger.Offset, error) {
	if err := c.look("ends"); err != nil {
		return nil, err
	}
	return c.w.topic(name).Describe().End, nil
}

// Stable is verify.Topics'.
func (c client) Stable(_ context.Context, name string) ([]ledger.Offset, error) {
	if err := c.look("stable"); err != nil {
		return nil, err
	}
	ends := make([]ledger.Offset, len(c.w.books))
	for p := range ends {
		ends[p] = ledger.Offset(c.w.topic(name).Log(ledger.Partition(p)).Stable())
	}
	return ends, nil
}

// reader reads one topic of one incarnation, as broker.Reader.
type reader struct {
	client
	topic     *topic.Topic
	want      string
	partition ledger.Partition
	at        ledger.Frontier
}

func (r *reader) identify() error { return identify(r.topic, r.want) }

// identify compares the topic's id with the one wanted.
func identify(t *topic.Topic, want string) error {
	if found := t.Incarnation(); found != want {
		return &broker.IdentityError{Topic: t.Name, What: "incarnation", Want: want, Found: found}
	}
	return nil
}

// Seek is delivery.Reader's.
func (r *reader) Seek(_ context.Context, p ledger.Partition, at ledger.Frontier) error {
	if err := r.look("seek"); err != nil {
		return err
	}
	if err := r.identify(); err != nil {
		return err
	}
	if end := r.topic.Log(p).End(); at > end {
		return &broker.RangeError{Topic: r.topic.Name, Partition: p, Position: at, End: ledger.Offset(end), Cause: "offset out of range"}
	}
	r.partition, r.at = p, at
	return nil
}

// Poll is delivery.Reader's. Without records it does not wait: the wait is over at once.
func (r *reader) Poll(context.Context) ([]broker.Fetched, error) {
	if err := r.look("poll"); err != nil {
		return nil, err
	}
	if err := r.identify(); err != nil {
		return nil, err
	}
	most := r.w.cut(int(r.topic.Log(r.partition).Stable() - r.at))
	records, next := r.topic.Log(r.partition).Read(r.partition, r.at, most)
	if next == r.at {
		return nil, context.DeadlineExceeded
	}
	f := broker.Fetched{Partition: r.partition, Records: records, From: r.at, Next: next}
	r.at = next
	return []broker.Fetched{f}, nil
}

// ReadTo is verify.Reader's.
func (r *reader) ReadTo(_ context.Context, p ledger.Partition, from, end ledger.Frontier, fn func(ledger.SourceRecord) error) (ledger.Frontier, error) {
	if err := r.identify(); err != nil {
		return from, err
	}
	records, _ := r.topic.Log(p).Read(p, from, int(end-from))
	for _, rec := range records {
		if ledger.Frontier(rec.Offset) >= end {
			break
		}
		if err := fn(rec); err != nil {
			return from, err
		}
		from = ledger.Frontier(rec.Offset) + 1
	}
	return max(from, min(end, r.topic.Log(p).Stable())), nil
}

// Close ends the reader.
func (r *reader) Close() {}

// producer publishes to one incarnation of the output topic, as broker.Producer.
type producer struct {
	client
	want    string
	checked bool
	closed  bool
}

// Produce is delivery.Producer's.
func (x *producer) Produce(_ context.Context, p ledger.Partition, messages []broker.Message) ([]ledger.Offset, error) {
	w := x.w
	w.say("produce", int64(x.id), int64(len(messages)))
	switch {
	case x.retired || x.closed:
		w.violate("I17", "a publication by an actor or client that has ended")
	case x.killed:
		panic(crash{x.actor})
	case w.now < w.brokerBack && !x.checked:
		return nil, errBrokerAway
	case w.now < w.brokerBack:
		return nil, errSendUnknown
	}
	if !x.checked {
		if err := identify(w.output, x.want); err != nil {
			return nil, err
		}
		x.checked = true
	}
	records := w.canonical(p, messages)
	switch w.troubled(writeWays, min(4*w.callTrouble, 500)) {
	case fine:
		return w.publish(p, records)
	case refused:
		n := w.pick.One(len(records) + 1)
		w.count(fault.SendCut)
		offsets, _ := w.publish(p, records[:n])
		if w.pick.One(2) == 1 { // of which the end was not acknowledged
			offsets = offsets[:len(offsets)/2]
		}
		return offsets, errSendUnknown
	case unavailable, lostUnwritten:
		w.count(fault.LostUnwritten)
		return nil, errSendUnknown
	case lostWritten:
		w.count(fault.LostWritten)
		_, _ = w.publish(p, records)
		return nil, errSendUnknown
	case late:
		w.count(fault.Late)
		w.pending = append(w.pending, pending{row{role: "send", partition: p}, func() error {
			_, err := w.publish(p, records)
			return err
		}})
		return nil, errSendUnknown
	case crashBefore:
		w.count(fault.CrashBefore)
		panic(crash{x.actor})
	case crashAfter:
		w.count(fault.CrashAfter)
		_, _ = w.publish(p, records)
		panic(crash{x.actor})
	case between:
		w.interleave(x.actor, row{role: "relay", partition: p})
		return w.publish(p, records)
	}
	offsets, err := w.publish(p, records)
	w.interleave(x.actor, row{role: "relay", partition: p})
	return offsets, err
}

// Close is delivery.Producer's.
func (x *producer) Close() { x.closed = true }

// canonical keeps messages: as the bytes that the serial model has, where they are those, which costs no copy.
func (w *World) canonical(p ledger.Partition, messages []broker.Message) []serial.Output {
	records := make([]serial.Output, len(messages))
	outputs := w.books[p].Part.Outputs
	for i, m := range messages {
		if len(m.Headers) > 0 {
			s, err := strconv.Atoi(string(m.Headers[0].Value))
			if err == nil && s < len(outputs) && bytes.Equal(outputs[s].Value, m.Value) && bytes.Equal(outputs[s].Key, m.Key) {
				records[i] = outputs[s]
				continue
			}
		}
		records[i] = serial.Output{Key: slices.Clone(m.Key), Value: slices.Clone(m.Value)}
	}
	return records
}

// publish writes records to the output topic as it is now and returns their offsets.
func (w *World) publish(p ledger.Partition, records []serial.Output) ([]ledger.Offset, error) {
	log := w.output.Log(p)
	offsets := make([]ledger.Offset, len(records))
	for i := range records {
		if log == w.books[p].Output {
			w.receive(p, &records[i])
		}
		offsets[i] = log.Append(records[i].Key, records[i].Value, 0)
	}
	w.say("published", int64(p), int64(len(records)))
	return offsets, nil
}

// receive has the books check a record that was written to the output topic.
func (w *World) receive(p ledger.Partition, o *serial.Output) {
	if w.books[p].Publish(o.Key, o.Value) {
		w.count(fault.Repeat)
	}
}
