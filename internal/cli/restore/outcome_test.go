package restore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"amends/internal/faultwire"
	"amends/internal/kafkatest"
)

// A lost reply is no rollback: what a rebuild, or a replay, asked for is found again and nothing is done twice (S12).
func TestALostReplyIsReadAgain(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{"begin_rebuild", "record_rebuild_topic", "insert_binding", "advance_rebuild", "insert_verification", "claim"} {
		for _, fault := range []faultwire.Action{faultwire.CutBefore, faultwire.CutAfter} {
			if fault == faultwire.CutBefore && statement != "begin_rebuild" && statement != "claim" {
				continue // nothing was written: as of these two
			}
			t.Run(statement+" "+fault.String(), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "")
				w.loaded(story...)
				origin, ends := w.dump("shop"), w.ends("shop-output")
				proxy := faultwire.New(t, w.url)
				w.Env["AMENDS_DATABASE_URL"] = proxy.URL()
				shot := proxy.Arm(fault, 0, faultwire.CommitOf(statement))
				if statement == "claim" {
					epochs := `SELECT string_agg((epoch + 1)::text, ' ' ORDER BY partition) FROM amends.partitions`
					want := w.read(epochs)
					w.want(0, "", "replay -manifest @pipeline.json -execute")
					if now := w.read(strings.Replace(epochs, "+ 1", "", 1)); now != want {
						t.Errorf("epochs are %s, want %s", now, want)
					}
				} else if a := w.Call(t.Context(), "amends "+rebuild+" -execute"); a.Code != 0 {
					// The record of a verification is an operation of its own: its loss ends the run, which is safe to repeat.
					if statement != "insert_verification" {
						t.Fatalf("code %d\n%s", a.Code, a.Stderr)
					}
					w.want(0, "", rebuild+" -execute")
				}
				if !shot.Done() {
					t.Fatal("the fault never met its statement")
				}
				w.Env["AMENDS_DATABASE_URL"] = w.url
				if statement != "claim" {
					w.equal(4, origin, ends)
				}
			})
		}
	}
}

// The outcome of the topic's creation is not known: that is reported, and what is found is kept. Where the topic was not
// made the same command goes on; where it was, it is refused.
func TestTheCreationOfATopicWithAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		t.Run(map[bool]string{false: "not made", true: "made"}[made], func(t *testing.T) {
			t.Parallel()
			cluster := kafkatest.EmbeddedCluster(t)
			w := newWorldOn(t, cluster.ListenAddrs(), "")
			w.loaded(story...)
			origin, ends := w.dump("shop"), w.ends("shop-output")
			cluster.ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
				return nil, errors.New("the connection ends without an answer"), true
			})
			w.want(12, "it cannot be told whether this rebuild made the topic", rebuild+" -execute")
			if made {
				if _, err := w.admin.CreateTopic(context.WithoutCancel(t.Context()), "shop2-output", 2, 1); err != nil {
					t.Fatal(err)
				}
				topic, err := w.admin.Topic(t.Context(), "shop2-output")
				if err != nil {
					t.Fatal(err)
				}
				w.want(12, topic.Incarnation, rebuild)
				w.want(12, topic.Incarnation, rebuild+" -execute")
				if now, err := w.admin.Topic(t.Context(), "shop2-output"); err != nil || now.Incarnation != topic.Incarnation || w.ends("shop2-output")[0] != 0 {
					t.Errorf("the topic was touched: %+v, %v", now, err)
				}
				return
			}
			w.want(0, "", rebuild+" -execute")
			w.equal(4, origin, ends)
		})
	}
}
