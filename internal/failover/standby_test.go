package failover

import (
	"errors"
	"net/url"
	"strconv"
	"testing"

	"amends/internal/broker"
	"amends/internal/pgtest"
	"amends/internal/pipelinetest"
	"amends/internal/roles"
	"amends/internal/store"
)

// replicated is a world on a server with a standby.
func replicated(t *testing.T) (w *world, primary, standby *pgtest.Instance) {
	t.Helper()
	primary = pgtest.Server(t, "wal_receiver_status_interval=1", "hot_standby=on")
	w = newWorld(t, primary.New())
	return w, primary, primary.Standby()
}

// failOver ends the primary by SIGKILL and makes the standby the server that the address leads to.
func (w *world) failOver(primary, standby *pgtest.Instance) {
	w.Helper()
	primary.Kill()
	standby.Promote()
	w.proxy.Target(standby.URL())
}

// replayed returns the frontier of partition 0 as a standby has it.
func (w *world) replayed(standby *pgtest.Instance) string {
	w.Helper()
	u, err := url.Parse(w.url)
	w.ok(err)
	at, err := url.Parse(standby.URL())
	w.ok(err)
	u.Host = at.Host
	text, err := one(u.String(), "SELECT frontier::text FROM amends.partitions WHERE partition = 0")
	w.ok(err)
	return text
}

// epoch returns that of partition 0.
func (w *world) epoch() int {
	w.Helper()
	text, err := w.sql("SELECT epoch::text FROM amends.partitions WHERE partition = 0")
	w.ok(err)
	epoch, err := strconv.Atoi(text)
	w.ok(err)
	return epoch
}

// A standby that lost nothing is promoted under running roles: they claim again under the new timeline and go on, nobody
// ends, nothing is published twice.
// Shows F5.
func TestS12PromotedStandbyWithNothingLost(t *testing.T) {
	t.Parallel()
	w, primary, standby := replicated(t)
	r := w.start("first", roles.All()...)
	w.load(pipelinetest.Before...)
	w.positions(3, 5)
	epoch := w.epoch()
	primary.CatchUp(standby)
	w.failOver(primary, standby)
	w.load(pipelinetest.Correction...)
	w.positions(4, 10)
	if now := w.epoch(); now <= epoch {
		t.Errorf("epoch %d after the promotion, %d before", now, epoch)
	}
	server, err := w.db.Server(t.Context())
	w.ok(err)
	if server.Timeline != 2 {
		t.Errorf("timeline %d", server.Timeline)
	}
	w.load(pipelinetest.CancelLastDay...)
	w.positions(5, 11)
	r.stops()
	w.worked()
}

// A standby that lost a committed tail is promoted under running roles: the worker goes back and refolds to the same bytes,
// the relay finds the topic ahead, compares, and writes receipts instead of publishing again; the view catches up.
// Shows F6, I7.
func TestS12PromotedStandbyThatLostACommittedTail(t *testing.T) {
	t.Parallel()
	w, primary, standby := replicated(t)
	r := w.start("first", roles.All()...)
	w.load(pipelinetest.Before...)
	w.positions(3, 5)
	primary.CatchUp(standby)
	standby.Detach()
	w.load(pipelinetest.Correction...)
	w.positions(4, 10) // committed, published, materialized, and lost
	if got := w.replayed(standby); got != "3" {
		t.Fatalf("frontier %s on the standby, want 3: nothing is lost with it", got)
	}
	w.failOver(primary, standby)
	w.positions(4, 10)
	w.load(pipelinetest.CancelLastDay...)
	w.positions(5, 11)
	r.stops()
	w.worked()
}

// The same with roles that begin after the failover, and a topic that holds other bytes than the refolded ones: the relay
// stops for an operator (exit 11) and writes no receipt.
// Shows F6.
func TestS9LostTailWithOtherBytesStopsTheRelay(t *testing.T) {
	t.Parallel()
	w, primary, standby := replicated(t)
	r := w.start("first", roles.All()...)
	w.load(pipelinetest.Before...)
	w.positions(3, 5)
	r.stops()
	primary.CatchUp(standby)
	standby.Detach()
	// What the lost tail published, by a worker that had seen another correction.
	forged := `{"schema":1,"namespace":"demo","sequence":5,"output":["balance","widget","berlin","2026-01-01"],"version":2,"present":true,` +
		`"payload":{"close":71},"cause":{"partition":0,"offset":3,"txn_id":"T-1","revision":2},"repair":{"index":0,"count":5}}`
	w.publish(w.manifest.Output.Topic, w.manifest.Output.Incarnation, broker.Message{Key: []byte(`{"item":"widget","location":"berlin"}`), Value: []byte(forged)})
	w.failOver(primary, standby)
	w.load(pipelinetest.Correction...)
	source := w.start("second", roles.Source)
	relay := w.start("third", roles.Relay)
	if err := relay.ends(); !errors.Is(err, store.ErrIntegrity) {
		t.Errorf("the relay ended with %v", err)
	}
	source.stops()
	if got, err := w.sql("SELECT max(next_sequence)::text FROM amends.receipts"); err != nil || got != "5" {
		t.Errorf("receipts up to sequence %s, want those from before, up to 5; %v", got, err)
	}
	if n := len(w.published()); n != 6 {
		t.Errorf("%d records in the topic, want the 6 from before", n)
	}
}
