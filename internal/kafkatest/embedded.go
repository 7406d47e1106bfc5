package kafkatest

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Embedded starts an in-process broker that keeps its data in memory and ends with the test. It makes no topic by
// itself.
func Embedded(t testing.TB) []string {
	t.Helper()
	return EmbeddedCluster(t).ListenAddrs()
}

// EmbeddedCluster is Embedded for tests that inject faults into the broker. Options are added to its own.
func EmbeddedCluster(t testing.TB, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	own := []kfake.Opt{kfake.NumBrokers(1), kfake.DefaultNumPartitions(1)}
	cluster, err := kfake.NewCluster(append(own, options...)...)
	if err != nil {
		t.Fatalf("start embedded broker: %v", err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}
