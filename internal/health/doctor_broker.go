package health

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/phrase"
)

func (e *examination) brokers() {
	e.area = "broker"
	for _, d := range e.Brokers {
		if d.Err != nil {
			e.add(Failure, "address", d.Address+": "+sentence(d.Err), "while no broker answers nothing is read or published", "check -brokers, the network, and that the broker runs")
			continue
		}
		e.fine("address", "%s answers", d.Address)
	}
	switch {
	case refused(e.BrokerError):
		e.add(Failure, "metadata", sentence(e.BrokerError), "the broker refuses this user or client", "check credentials and access rules; the source group, both topics and their settings are needed")
	case e.BrokerError != nil:
		e.add(Failure, "metadata", sentence(e.BrokerError), "what listens there is no broker that this program can talk to", "check the port and the listener's protocol (TLS, SASL)")
	default:
		e.fine("metadata", "the broker answers and does not refuse this client")
	}
	if e.Manifest == nil {
		e.skip("topics", "not looked at: no manifest names them")
		return
	}
	c := e.Manifest.Config
	e.topic("source", e.Manifest.SourceTopic, c.SourceIncarnation, c.Partitions, &e.Source)
	if o := e.Manifest.Output; o != nil {
		e.topic("output", o.Topic, o.Incarnation, o.Partitions, &e.Output)
	}
}

// topic checks everything of a topic on which the contract depends (S9, S13), and how well it is kept.
func (e *examination) topic(role, name, incarnation string, partitions int32, f *TopicFacts) {
	const integrity = "every role stops with 11, and verify says UNAVAILABLE"
	if e.BrokerError != nil {
		e.skip(role+" topic", name+": not looked at, the broker does not answer")
		return
	}
	var identity *broker.IdentityError
	switch {
	case errors.Is(f.Err, broker.ErrNoTopic):
		e.add(Failure, role+" topic", sentence(f.Err), "its history is the only proof of what was published; "+integrity, "check -brokers; a deleted topic cannot be replaced: rebuild from a complete source")
		return
	case f.Err != nil && !errors.As(f.Err, &identity):
		e.add(Failure, role+" topic", sentence(f.Err), "what cannot be read cannot be trusted", "check the rights to describe the topic and its settings")
		return
	case f.Err != nil:
		e.add(Failure, role+" identity", sentence(f.Err), integrity, "the broker must tell topic ids: Apache Kafka does from 2.8 on, Redpanda from 25.3 on")
		return
	}
	t := &f.Topic
	e.when(t.Incarnation != incarnation, Failure, role+" identity", name+" is "+t.Incarnation, "the manifest names "+incarnation+": it was deleted and created again, or this is another cluster; "+integrity,
		"check -brokers; a new topic is a new namespace")
	e.when(t.Partitions != partitions, Failure, role+" partitions", phrase.Counted(int(t.Partitions), "partition"), fmt.Sprintf("the manifest says %d: keys would lie elsewhere; %s", partitions, integrity),
		"partitions cannot be taken back: create a topic and a namespace anew")
	kept := t.Cleanup == "delete" && t.RetentionMS == -1 && t.RetentionBytes == -1
	e.when(!kept, Failure, role+" retention", fmt.Sprintf("cleanup.policy=%s retention.ms=%d retention.bytes=%d", t.Cleanup, t.RetentionMS, t.RetentionBytes),
		"records would be removed; "+integrity, "set cleanup.policy=delete, retention.ms=-1, retention.bytes=-1 on "+name)
	var cut []string
	for p, start := range t.Start {
		if start != 0 {
			cut = append(cut, fmt.Sprintf("%d at %d", p, start))
		}
	}
	found := "0 everywhere"
	if len(cut) > 0 {
		found = "not 0: " + strings.Join(cut[:min(len(cut), 8)], ", ")
	}
	e.when(len(cut) > 0, Failure, role+" log start", found, "records are gone for ever; "+integrity, "restore the topic's data; without it rebuild from a complete source")
	e.layout(role, name, f)
}

// layout checks what keeps a topic available.
func (e *examination) layout(role, name string, f *TopicFacts) {
	if f.LayoutErr != nil {
		e.skip(role+" replicas", sentence(f.LayoutErr))
		return
	}
	l := &f.Layout
	e.when(len(l.Leaderless) > 0, Failure, role+" leaders", leaders(l), "a partition without a leader can neither be read nor written", "bring its brokers back")
	switch {
	case l.Replicas < 2:
		e.add(Warning, role+" replicas", fmt.Sprintf("%d copy", l.Replicas), "one broker's disk holds all there is: losing it ends the namespace", "in production use -replication-factor 3 and min.insync.replicas=2")
	case len(l.Short) > 0:
		e.add(Warning, role+" replicas", fmt.Sprintf("%d copies, too few in sync on %s", l.Replicas, phrase.Counted(len(l.Short), "partition")), "the next loss may stop writes or lose records", "bring the missing brokers back")
	default:
		e.when(l.MinInSync < 2, Warning, role+" replicas", fmt.Sprintf("%d copies, min.insync.replicas=%d", l.Replicas, l.MinInSync), "one copy is enough for an acknowledgement, and can be lost with its broker", "set min.insync.replicas=2 on "+name)
	}
	if l.MaxMessageBytes > 0 { // it bounds batches of records
		e.when(l.MaxMessageBytes < broker.ProduceBatchBytes, Warning, role+" message size", fmt.Sprintf("max.message.bytes=%d", l.MaxMessageBytes),
			fmt.Sprintf("a batch is refused that is larger, and amends sends up to %d bytes in one", broker.ProduceBatchBytes), "raise max.message.bytes on "+name)
	}
}

func leaders(l *broker.Layout) string {
	if len(l.Leaderless) == 0 {
		return "every partition has one"
	}
	slices.Sort(l.Leaderless)
	return "none for partition " + join(l.Leaderless)
}

func join(partitions []ledger.Partition) string {
	parts := make([]string, len(partitions))
	for i, p := range partitions {
		parts[i] = fmt.Sprint(p)
	}
	return strings.Join(parts, ", ")
}
