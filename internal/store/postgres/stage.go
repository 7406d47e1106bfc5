package postgres

import (
	"context"
	"math"

	"amends/internal/store/postgres/row"
	"amends/internal/store/postgres/session"
)

// stageRows is from how many rows on a page is staged. Arrays cost the server 4 us a row more than COPY into a table of
// the connection's own does; emptying that table costs about as much as 200 rows.
const stageRows = 200

// chooseStage makes the table for a page that is large enough, once a connection.
func (w *pageWriter) chooseStage(ctx context.Context) (err error) {
	if len(w.page.Changes) < stageRows {
		return nil
	}
	if w.stage, err = w.s.Own(ctx, "create_view_stage"); err != nil || !w.stage {
		return err
	}
	return w.s.Prepare(ctx, "scan_stage", "copy_view_stage", "replace_staged_rows", "plan_dense", "replace_staged_dense")
}

// sendStage queues the rows that exist as COPY and one update from them. Its plan is made once a connection and must read
// the staged rows as they lie, which other statements are kept from; for dense rows it is made each time.
func (w *pageWriter) sendStage(ctx context.Context, buffers *writeBuffers) error {
	c := &buffers.rows
	c.Reset()
	r := reach{first: math.MaxInt32, last: math.MinInt32, keys: make(map[int64]struct{})}
	for i := range w.page.Changes {
		change := &w.page.Changes[i]
		if change.Before == 0 {
			continue
		}
		key := w.ids[change.Row.ID.Key]
		r.add(key, row.DateOf(change.Row.ID))
		c.Row(viewRowFields + 1)
		c.Int64(int64(change.Before))
		buffers.body = w.n.encodeViewRow(c, key, &change.Row, buffers.body)
	}
	if err := w.s.CopyIn(ctx, "copy_view_stage", c); err != nil {
		return err
	}
	namespace, partition := session.Int32Param(w.n.id), session.Int32Param(int32(w.page.Partition))
	if !r.dense() {
		w.s.Send("scan_stage")
		w.s.Send("replace_staged_rows", namespace, partition)
		return nil
	}
	keys := session.NewInt64s(len(r.keys))
	for key := range r.keys {
		keys.Int64(key)
	}
	w.s.Send("plan_dense")
	w.s.Send("replace_staged_dense", namespace, partition, keys.Param(), session.Int32Param(r.first), session.Int32Param(r.last))
	return nil
}

// reach is where rows lie: how many, of which keys, and on which dates.
type reach struct {
	keys        map[int64]struct{}
	rows        int
	first, last int32
}

func (r *reach) add(key int64, date int32) {
	r.rows++
	r.keys[key] = struct{}{}
	r.first, r.last = min(r.first, date), max(r.last, date)
}

// denseShare is the part of the days in reach that must have a row, so that reading all rows of the keys on these days costs
// less than finding each row by the index: that is some 20 times as much a row.
const denseShare = 4

// dense reports whether the rows are a good part of all rows in reach. A row with the date infinity, a status, puts every
// later day in reach.
func (r *reach) dense() bool {
	days := int64(r.last) - int64(r.first) + 1
	return int64(r.rows)*denseShare >= days*int64(len(r.keys))
}
