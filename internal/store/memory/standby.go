package memory

import (
	"maps"
	"slices"

	"amends/internal/store"
)

// Standby is everything a DB held at one moment, as a standby server that lags has it.
type Standby struct{ namespaces map[string]*space }

// Standby returns a copy of the DB as it is now.
func (db *DB) Standby() *Standby {
	db.mu.Lock()
	defer db.mu.Unlock()
	return &Standby{namespaces: copySpaces(db.namespaces)}
}

// PromoteStandby makes s the server: what was committed after it was copied is lost, and the timeline is another. Nonces
// go on, as random ones do. Namespaces that were opened before stay open.
func (db *DB) PromoteStandby(s *Standby) {
	db.mu.Lock()
	defer db.mu.Unlock()
	spaces := copySpaces(s.namespaces)
	for name, is := range db.namespaces {
		if was := spaces[name]; was != nil {
			*is = *was
		} else {
			delete(db.namespaces, name)
		}
	}
	db.server.Timeline++
}

func copySpaces(spaces map[string]*space) map[string]*space {
	copied := make(map[string]*space, len(spaces))
	for name, s := range spaces {
		c := *s
		c.partitions = make([]*partition, len(s.partitions))
		for i, p := range s.partitions {
			c.partitions[i] = p.copy()
		}
		c.verifications = slices.Clone(s.verifications)
		copied[name] = &c
	}
	return copied
}

// copy shares what is never changed in place: decisions, rows and snapshots are replaced whole.
func (s *partition) copy() *partition {
	c := *s
	if s.relay != nil {
		relay, view := *s.relay, *s.view
		c.relay, c.view = &relay, &view
	}
	c.keys, c.snapshots, c.rows = maps.Clone(s.keys), maps.Clone(s.snapshots), maps.Clone(s.rows)
	c.byKey = maps.Clone(s.byKey)
	for id, at := range c.byKey {
		c.byKey[id] = slices.Clone(at)
	}
	c.leases = make(map[store.Role]*leaseRow, len(s.leases))
	for role, row := range s.leases {
		l := *row
		c.leases[role] = &l
	}
	c.journal, c.ends = slices.Clone(s.journal), slices.Clone(s.ends)
	c.receipts, c.violations = slices.Clone(s.receipts), slices.Clone(s.violations)
	c.measurements = s.measurements.Clone()
	return &c
}
