package failover

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/broker"
	"amends/internal/kafkatest"
	"amends/internal/pgtest"
	"amends/internal/pipelinetest"
	"amends/internal/roles"
	"amends/internal/worker"
)

// A frontier of 1 in PostgreSQL beats an offset of 5 that somebody committed for the group: the fetch position comes from the
// partition row alone. On Apache Kafka.
// Shows N1.
func TestS8FrontierBeatsAGroupCommit(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	w := newWorldOn(t, pgtest.New(t), broker.Options{Brokers: brokers}, kafkatest.Topic(t, brokers), kafkatest.Topic(t, brokers))
	first := w.start("first", roles.Source)
	w.load(pipelinetest.Before[0])
	w.frontier("1")
	first.stops()
	w.load(append(append(append([]string(nil), pipelinetest.Before[1:]...), pipelinetest.Correction...), pipelinetest.CancelLastDay...)...)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	w.ok(err)
	defer client.Close()
	admin, group := kadm.NewClient(client), worker.GroupID(w.manifest.Config.Namespace)
	var offsets kadm.Offsets
	offsets.AddOffset(w.manifest.SourceTopic, 0, 5, -1)
	w.ok(admin.CommitAllOffsets(context.Background(), group, offsets))
	committed, err := admin.FetchOffsets(t.Context(), group)
	w.ok(err)
	if at, ok := committed.Lookup(w.manifest.SourceTopic, 0); !ok || at.At != 5 {
		t.Fatalf("the group's offset is %+v", at)
	}
	w.start("second", roles.All()...)
	w.positions(5, 11)
	w.worked()
	if got, err := w.sql("SELECT string_agg(source_offset::text, ' ' ORDER BY source_offset) FROM amends.journal"); err != nil || got != "0 1 2 3 4" {
		t.Errorf("decisions at %s, %v", got, err)
	}
}
