package postgres

import (
	"context"

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
	return w.s.Prepare(ctx, "scan_stage", "copy_view_stage", "replace_staged_rows")
}

// sendStage queues the rows that exist as COPY and one update from them. A plan is made once a connection and must read
// the staged rows as they lie, which other statements are kept from.
func (w *pageWriter) sendStage(ctx context.Context, buffers *writeBuffers) error {
	c := &buffers.rows
	c.Reset()
	for i := range w.page.Changes {
		change := &w.page.Changes[i]
		if change.Before == 0 {
			continue
		}
		c.Row(viewRowFields + 1)
		c.Int64(int64(change.Before))
		buffers.body = w.n.encodeViewRow(c, w.ids[change.Row.ID.Key], &change.Row, buffers.body)
	}
	if err := w.s.CopyIn(ctx, "copy_view_stage", c); err != nil {
		return err
	}
	w.s.Send("scan_stage")
	w.s.Send("replace_staged_rows", session.Int32Param(w.n.id), session.Int32Param(int32(w.page.Partition)))
	return nil
}
