package broker

import (
	"context"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"amends/internal/ledger"
)

// Layout is how well a topic is kept, on which the contract does not depend and its availability does. Replicas is the smallest
// number of copies of any partition. MinInSync and MaxMessageBytes are 0 where the broker does not tell.
type Layout struct {
	Leaderless      []ledger.Partition
	Short           []ledger.Partition // fewer copies in sync than there are
	Replicas        int
	MinInSync       int64
	MaxMessageBytes int64
}

// Layout reads a topic's replicas and the settings that matter to them.
func (a *Admin) Layout(ctx context.Context, topic string) (Layout, error) {
	op, cancel := context.WithTimeout(ctx, a.opts.requestTimeout())
	defer cancel()
	l, err := a.layout(op, topic)
	if err != nil {
		return Layout{}, fmt.Errorf("read layout of topic %s: %w", topic, a.opts.classify(ctx, err))
	}
	return l, nil
}

func (a *Admin) layout(ctx context.Context, topic string) (Layout, error) {
	var l Layout
	r := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(topic)
	r.Topics = append(r.Topics, t)
	resp, err := r.RequestWith(ctx, a.client)
	if err != nil {
		return l, err
	}
	if len(resp.Topics) != 1 {
		return l, kerr.UnknownTopicOrPartition
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		return l, err
	}
	for i, p := range resp.Topics[0].Partitions {
		if i == 0 || len(p.Replicas) < l.Replicas {
			l.Replicas = len(p.Replicas)
		}
		switch {
		case p.Leader < 0:
			l.Leaderless = append(l.Leaderless, ledger.Partition(p.Partition))
		case len(p.ISR) < len(p.Replicas):
			l.Short = append(l.Short, ledger.Partition(p.Partition))
		}
	}
	configs, err := a.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return l, err
	}
	c, err := configs.On(topic, func(r *kadm.ResourceConfig) error { return r.Err })
	if err != nil {
		return l, err
	}
	for _, v := range c.Configs {
		n, err := strconv.ParseInt(v.MaybeValue(), 10, 64)
		switch {
		case err != nil:
		case v.Key == "min.insync.replicas":
			l.MinInSync = n
		case v.Key == "max.message.bytes":
			l.MaxMessageBytes = n
		}
	}
	return l, nil
}
