package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/row"
	"amends/internal/store/postgres/session"
)

// viewKeys remembers the view's committed key ids of one partition, as read from one server history.
type viewKeys struct {
	ids    map[ledger.StockKey]int64
	server store.Server
}

// ViewPosition returns the view position row as read under its lock: ErrBinding before the binding.
func (n *Namespace) ViewPosition(ctx context.Context, p ledger.Partition) (v store.ViewPosition, err error) {
	err = n.db.pool.Look(ctx, fmt.Sprintf("read view position of partition %d", p), func(ctx context.Context, s *session.Session) error {
		return n.readViewPosition(ctx, s, p, &v)
	})
	return v, err
}

// readViewPosition locks and reads the view position row.
func (n *Namespace) readViewPosition(ctx context.Context, s *session.Session, p ledger.Partition, v *store.ViewPosition) error {
	var nonce []byte
	err := s.QueryRow(ctx, []any{&v.Term, &nonce, &v.Output, &v.Sequence, &v.Cause, &v.Stopped}, "lock_view", n.id, int32(p))
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("not bound: %w", store.ErrBinding)
	}
	copy(v.Nonce[:], nonce)
	return err
}

// ViewRows returns the stored rows among ids; absent ones are left out.
func (n *Namespace) ViewRows(ctx context.Context, p ledger.Partition, ids []ledger.OutputID) (map[ledger.OutputID]store.ViewRow, error) {
	rows := make(map[ledger.OutputID]store.ViewRow, len(ids))
	if len(ids) == 0 {
		return rows, nil
	}
	verb := fmt.Sprintf("read %d view rows of partition %d", len(ids), p)
	err := n.db.pool.Read(ctx, verb, func(ctx context.Context, s *session.Session) error {
		known, err := n.viewKeyIDs(ctx, s, p, len(ids), func(i int) ledger.StockKey { return ids[i].Key })
		if err != nil {
			return err
		}
		keys, dates, kinds := session.NewInt64s(len(ids)), session.NewDates(len(ids)), session.NewInt16s(len(ids))
		var asked []ledger.OutputID
		for _, id := range ids {
			if key, ok := known[id.Key]; ok {
				keys.Int64(key)
				dates.Int32(row.DateOf(id))
				kinds.Int16(int16(id.Kind))
				asked = append(asked, id)
			}
		}
		return s.Stream(ctx, "view_rows_by_id", func(v [][]byte) error {
			r := store.ViewRow{ID: asked[session.ReadInt64(v[0])-1]}
			if err := row.ReadView(v[1:], p, &r); err != nil {
				return err
			}
			rows[r.ID] = r
			return nil
		}, session.Int32Param(n.id), session.Int32Param(int32(p)), keys.Param(), dates.Param(), kinds.Param())
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// viewKeyIDs returns the ids of those of count keys that are stored, from memory where it can.
func (n *Namespace) viewKeyIDs(ctx context.Context, s *session.Session, p ledger.Partition, count int, key func(int) ledger.StockKey) (map[ledger.StockKey]int64, error) {
	known := make(map[ledger.StockKey]int64, min(count, 1024))
	var unknown []ledger.StockKey
	n.mu.Lock()
	cache := n.keys[p]
	if cache == nil || cache.server != s.Server() || len(cache.ids) > keyCacheLimit {
		cache = &viewKeys{ids: map[ledger.StockKey]int64{}, server: s.Server()}
		n.keys[p] = cache
	}
	for i := range count {
		k := key(i)
		if _, seen := known[k]; seen {
			continue
		}
		id, ok := cache.ids[k]
		if !ok {
			unknown = append(unknown, k)
			id = -1
		}
		known[k] = id
	}
	n.mu.Unlock()
	if len(unknown) > 0 {
		if err := n.findViewKeys(ctx, s, p, unknown, known); err != nil {
			return nil, err
		}
		for _, k := range unknown {
			if known[k] < 0 {
				delete(known, k)
			}
		}
		n.rememberKeys(p, s.Server(), unknown, known)
	}
	return known, nil
}

// findViewKeys puts the stored ids of keys into known.
func (n *Namespace) findViewKeys(ctx context.Context, s *session.Session, p ledger.Partition, keys []ledger.StockKey, known map[ledger.StockKey]int64) error {
	items, locations := session.NewBytes(len(keys)), session.NewBytes(len(keys))
	for _, k := range keys {
		items.Text(k.Item)
		locations.Text(k.Location)
	}
	return s.Stream(ctx, "find_view_keys", func(v [][]byte) error {
		known[keys[session.ReadInt64(v[0])-1]] = session.ReadInt64(v[1])
		return nil
	}, session.Int32Param(n.id), items.Param(), locations.Param(), session.Int32Param(int32(p)))
}

// rememberKeys keeps the committed ids of keys.
func (n *Namespace) rememberKeys(p ledger.Partition, server store.Server, keys []ledger.StockKey, ids map[ledger.StockKey]int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	cache := n.keys[p]
	if cache == nil || cache.server != server {
		return
	}
	for _, k := range keys {
		if id, ok := ids[k]; ok {
			cache.ids[k] = id
		}
	}
}

// forgetKeys drops what is remembered of a partition: something was not as expected.
func (n *Namespace) forgetKeys(p ledger.Partition) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.keys, p)
}

// ApplyViewInput commits one page: rows, position and a violation together (S9). ErrFence unless term, nonce and position
// are the stored ones; ErrProtocol if a row's stored version is not the one given; nothing is written then.
func (n *Namespace) ApplyViewInput(ctx context.Context, l store.Lease, page *store.ViewPage) (err error) {
	verb := fmt.Sprintf("apply view input of partition %d", page.Partition)
	if err := store.CheckPage(page); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if l.Role != store.View || l.Partition != page.Partition {
		return fmt.Errorf("%s: a lease of %s of partition %d: %w", verb, l.Role, l.Partition, store.ErrFence)
	}
	bounded, cancel := context.WithTimeout(ctx, session.OperationTimeout)
	defer cancel()
	s, err := n.db.pool.Acquire(bounded)
	if err != nil {
		return session.Before(verb, err)
	}
	defer s.Release()
	defer func() {
		if err != nil {
			n.forgetKeys(page.Partition)
		}
	}()
	w := &pageWriter{n: n, s: s, page: page}
	if err := w.write(bounded, l); err != nil {
		switch {
		case session.Fenced(err):
			return fmt.Errorf("%s: term %d: %w", verb, l.Term, store.ErrFence)
		case session.Contradicts(err):
			return fmt.Errorf("%s: %w: %w", verb, store.ErrProtocol, err)
		}
		return session.Before(verb, err)
	}
	if err := s.Commit(bounded); err != nil {
		return session.Before(verb, err)
	}
	n.rememberKeys(page.Partition, s.Server(), w.fresh, w.ids)
	return nil
}

// pageWriter writes one page in one transaction, all but COMMIT.
type pageWriter struct {
	n     *Namespace
	s     *session.Session
	page  *store.ViewPage
	ids   map[ledger.StockKey]int64
	fresh []ledger.StockKey // keys that the page stores first
	stage bool              // rows that exist are replaced from the connection's own table
}

func (w *pageWriter) write(ctx context.Context, l store.Lease) error {
	if err := w.s.Prepare(ctx, "lock_view_position", "copy_view_keys", "copy_view_rows", "replace_view_rows",
		"insert_protocol_error", "move_view"); err != nil {
		return err
	}
	if err := w.findKeys(ctx); err != nil {
		return err
	}
	if err := w.chooseStage(ctx); err != nil {
		return err
	}
	buffers := w.n.db.buffers.Get().(*writeBuffers)
	defer w.n.db.buffers.Put(buffers)
	defer w.s.Arm(ctx)()
	page, b := w.page, w.page.Before
	namespace, partition := session.Int32Param(w.n.id), session.Int32Param(int32(page.Partition))
	if err := w.s.SendBegin(ctx); err != nil {
		return err
	}
	w.s.Send("lock_view_position", namespace, partition, session.Int64Param(l.Term), l.Nonce[:],
		session.Int64Param(int64(b.Output)), session.Int64Param(int64(b.Sequence)), session.Int64Param(int64(b.Cause)))
	replaced, err := w.sendRows(ctx, buffers)
	if err != nil {
		return err
	}
	if v := page.Stop; v != nil {
		w.s.Send("insert_protocol_error", session.Int64Param(int64(v.Offset)), namespace, partition, []byte(store.PlainText(v.Reason)), v.Key, v.Value)
	}
	w.s.Send("move_view", namespace, partition, session.Int64Param(int64(page.Next.Output)), session.Int64Param(int64(page.Next.Sequence)),
		session.Int64Param(int64(page.Next.Cause)), session.BoolParam(page.Next.Stopped))
	results, err := w.s.Sync(ctx)
	if err != nil {
		return err
	}
	for _, r := range results {
		if strings.HasPrefix(r.Name, "replace_") && r.Rows != int64(replaced) {
			return fmt.Errorf("%d of %d rows have the expected version: %w", r.Rows, replaced, store.ErrProtocol)
		}
	}
	return nil
}

// findKeys finds the ids of the page's keys and gives one to each new key: the first sequence it has in the page.
func (w *pageWriter) findKeys(ctx context.Context) (err error) {
	changes := w.page.Changes
	if len(changes) == 0 {
		return nil
	}
	w.ids, err = w.n.viewKeyIDs(ctx, w.s, w.page.Partition, len(changes), func(i int) ledger.StockKey { return changes[i].Row.ID.Key })
	if err != nil {
		return err
	}
	first := map[ledger.StockKey]int64{}
	for i := range changes {
		k, sequence := changes[i].Row.ID.Key, int64(changes[i].Row.Sequence)
		if _, known := w.ids[k]; known {
			continue
		}
		if changes[i].Before > 0 {
			return fmt.Errorf("sequence %d: no row of its key is stored: %w", sequence, store.ErrProtocol)
		}
		least, seen := first[k]
		if !seen {
			w.fresh = append(w.fresh, k)
		}
		if !seen || sequence < least {
			first[k] = sequence
		}
	}
	for _, k := range w.fresh {
		w.ids[k] = first[k]
	}
	return nil
}

// sendRows queues new keys and new rows as COPY and the rest as one update; it returns how many rows that must replace.
func (w *pageWriter) sendRows(ctx context.Context, buffers *writeBuffers) (replaced int, err error) {
	if len(w.fresh) > 0 {
		c := &buffers.keys
		c.Reset()
		for _, k := range w.fresh {
			encodeKey(c, w.ids[k], w.n.id, w.page.Partition, k)
		}
		if err := w.s.CopyIn(ctx, "copy_view_keys", c); err != nil {
			return 0, err
		}
	}
	c := &buffers.rows
	c.Reset()
	for i := range w.page.Changes {
		change := &w.page.Changes[i]
		if change.Before > 0 {
			replaced++
			continue
		}
		c.Row(viewRowFields)
		buffers.body = w.n.encodeViewRow(c, w.ids[change.Row.ID.Key], &change.Row, buffers.body)
	}
	if replaced < len(w.page.Changes) {
		if err := w.s.CopyIn(ctx, "copy_view_rows", c); err != nil {
			return 0, err
		}
	}
	switch {
	case replaced == 0:
	case w.stage:
		err = w.sendStage(ctx, buffers)
	default:
		w.sendReplacements(replaced)
	}
	return replaced, err
}

// sendReplacements queues the update of the rows that exist.
func (w *pageWriter) sendReplacements(count int) {
	keys, dates, kinds, before := session.NewInt64s(count), session.NewDates(count), session.NewInt16s(count), session.NewInt64s(count)
	versions, sequences, offsets, revisions := session.NewInt64s(count), session.NewInt64s(count), session.NewInt64s(count), session.NewInt64s(count)
	digests, closes, previous, thresholds := session.NewInt64s(count), session.NewInt64s(count), session.NewInt64s(count), session.NewInt64s(count)
	indexes, counts, present, txns, statuses := session.NewInt32s(count), session.NewInt32s(count), session.NewBools(count), session.NewBytes(count), session.NewTexts(count)
	for i := range w.page.Changes {
		change := &w.page.Changes[i]
		if change.Before == 0 {
			continue
		}
		r := &change.Row
		closed, alert := has(r)
		keys.Int64(w.ids[r.ID.Key])
		dates.Int32(row.DateOf(r.ID))
		kinds.Int16(int16(r.ID.Kind))
		before.Int64(int64(change.Before))
		versions.Int64(int64(r.Version))
		sequences.Int64(int64(r.Sequence))
		offsets.Int64(int64(r.Cause.Offset))
		revisions.Int64(int64(r.Cause.Revision))
		digests.Int64(r.Digest)
		closes.Int64If(closed, r.Close)
		previous.Int64If(alert, r.Previous)
		thresholds.Int64If(alert, r.Threshold)
		indexes.Int32(r.Index)
		counts.Int32(r.Count)
		present.Bool(r.Present)
		txns.Text(r.Cause.TxnID)
		if r.Status == nil {
			statuses.Null()
		} else {
			statuses.Bytes(row.AppendStatus(nil, r.Status))
		}
	}
	params := [][]byte{session.Int32Param(w.n.id), session.Int32Param(int32(w.page.Partition))}
	for _, a := range []*session.Array{keys, dates, kinds, before, versions, sequences, offsets, revisions, digests, closes, previous, thresholds,
		indexes, counts, present, txns, statuses} {
		params = append(params, a.Param())
	}
	w.s.Send("replace_view_rows", params...)
}
