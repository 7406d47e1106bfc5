package health

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"amends/internal/phrase"
	"amends/internal/store"
	"amends/internal/store/postgres/checkup"
	"amends/internal/store/postgres/grants"
)

// The versions of PostgreSQL that are tested, and how many connections one process of all roles may open.
const (
	leastVersion   = 15
	newestVersion  = 18
	processConns   = 18
	retainedMost   = 10 << 30 // WAL kept by one slot
	idleRetainMost = 1 << 30  // by a slot that nobody reads
)

func (e *examination) database() {
	e.area = "database"
	s := e.Server
	if s == nil {
		e.add(Failure, "server", sentence(e.ServerError), "nothing is decided, published or shown without it",
			"check AMENDS_DATABASE_URL, the network, pg_hba.conf, and that the server runs")
		return
	}
	major := int(s.Version / 10000)
	switch {
	case major < leastVersion:
		e.add(Failure, "version", "PostgreSQL "+s.VersionText, "every start is refused", "upgrade to 15..18")
	default:
		e.when(major > newestVersion, Warning, "version", "PostgreSQL "+s.VersionText, "tested with 15..18", "use 18 until this version is tested")
	}
	e.when(s.Encoding != "UTF8", Failure, "encoding", s.Encoding, "identifiers are UTF-8 and every start is refused", "make a database with ENCODING 'UTF8'")
	e.when(s.Standby, Failure, "primary", yes(s.Standby, "this is a standby", "this is a primary"), "a standby cannot be written to; roles wait for ever", "name the primary in AMENDS_DATABASE_URL")
	e.when(s.Pooled, Failure, "pooler", yes(s.Pooled, "a connection pooler stands between", "connected to the server itself"), "session locks and the server's identity do not survive one; every start is refused", "connect to PostgreSQL itself")
	e.durability(s)
	e.connections(s)
	e.timeouts(s)
	e.slots(s)
}

func yes(b bool, one, other string) string {
	if b {
		return one
	}
	return other
}

func (e *examination) durability(s *checkup.Server) {
	set := func(name string) string { return s.Settings[name] }
	e.when(set("fsync") != "on", Failure, "fsync", set("fsync"), "what is committed could be lost; every start is refused", "set fsync = on and restart the server")
	e.when(set("full_page_writes") != "on", Warning, "full_page_writes", set("full_page_writes"), "a crash may tear pages, unless the file system cannot", "set full_page_writes = on")
	e.fine("synchronous_commit", "%s for others; every transaction of amends sets it on", set("synchronous_commit"))
	if names := set("synchronous_standby_names"); names != "" {
		e.when(s.Standbys == 0, Warning, "standbys", fmt.Sprintf("commits wait for %s; %s connected", names, phrase.Counted(int(s.Standbys), "standby server")), "with none connected every commit waits for ever", "bring the standbys back or change synchronous_standby_names")
	}
	e.when(set("data_checksums") != "on", Warning, "data_checksums", set("data_checksums"), "damage on disk shows late, as DRIFT or an integrity stop", "enable them with pg_checksums while the server is down")
	e.when(set("autovacuum") != "on", Warning, "autovacuum", set("autovacuum"), "position rows are updated by every commit and bloat without it", "set autovacuum = on")
}

func (e *examination) connections(s *checkup.Server) {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(s.Settings[name], 10, 64) // a setting that this version lacks counts as 0
		return n
	}
	free := number("max_connections") - number("superuser_reserved_connections") - number("reserved_connections") - s.Connections
	e.when(free < processConns, Warning, "connections", fmt.Sprintf("%d in use, %d free of %s", s.Connections, max(0, free), s.Settings["max_connections"]),
		fmt.Sprintf("a process of all roles opens up to %d", processConns), "raise max_connections, or run fewer processes")
}

// timeouts looks at limits that amends does not set itself: those that it sets, statement_timeout and lock_timeout among them, are its
// own whatever the server's are.
func (e *examination) timeouts(s *checkup.Server) {
	for _, name := range []string{"idle_session_timeout", "transaction_timeout"} {
		v, known := s.Settings[name]
		if !known {
			continue
		}
		e.when(v != "0", Warning, name, v, "it ends connections or long readings such as verify and rebuild", "ALTER ROLE "+s.Role+" SET "+name+" = 0")
	}
	e.fine("statement_timeout", "%s for others; amends sets its own limits on every connection", s.Settings["statement_timeout"])
}

func (e *examination) slots(s *checkup.Server) {
	if len(s.Slots) == 0 {
		e.fine("replication slots", "none holds WAL")
		return
	}
	for _, slot := range s.Slots {
		found := fmt.Sprintf("%s: %s, %s of WAL kept", slot.Name, yes(slot.Active, "in use", "nobody reads it"), bytes(slot.Retained))
		bad := slot.Status == "lost" || slot.Retained > retainedMost || !slot.Active && slot.Retained > idleRetainMost
		if slot.Status == "lost" {
			found += ", lost"
		}
		e.when(bad, Warning, "replication slot", found, "WAL that a slot keeps fills the disk, which stops every commit", "bring its reader back, drop it, or set max_slot_wal_keep_size")
	}
}

// schema checks migrations, the namespace, and what the role may do.
func (e *examination) schema() {
	e.area = "schema"
	if e.Server == nil {
		for _, name := range []string{"migrations", "namespace", "grants", "leases"} {
			e.skip(name, "not looked at: the database does not answer")
		}
		return
	}
	if !e.migrations() {
		for _, name := range []string{"namespace", "leases"} {
			e.skip(name, "not looked at: the schema does not fit")
		}
		e.grants(e.Server)
		return
	}
	e.namespace()
	e.grants(e.Server)
	e.leases()
}

func (e *examination) migrations() bool {
	const (
		refuse = "every role and command but migrate ends with 13"
		apply  = "commands that read end with 13; a role, output create and source load apply what is missing, where their database role may"
	)
	applied, missing := 0, 0
	var odd []string
	for _, m := range e.Migrations {
		switch {
		case !m.Known:
			odd = append(odd, fmt.Sprintf("%d (%s) is unknown to this binary", m.Version, m.Name))
		case m.Applied && m.Stored != m.Checksum:
			odd = append(odd, fmt.Sprintf("%d (%s) has another checksum", m.Version, m.Name))
		case m.Applied:
			applied++
		default:
			missing++
		}
	}
	switch {
	case e.SchemaError != nil:
		e.add(Failure, "migrations", sentence(e.SchemaError), refuse, "mend what is said under database first")
	case len(odd) > 0:
		e.add(Failure, "migrations", strings.Join(odd, "; "), refuse, "use the version of amends that made this schema, or a newer one")
	case applied == 0:
		e.add(Failure, "migrations", "the database has no amends schema", apply, "migrate up, as the role that is to own the schema")
	case missing > 0:
		e.add(Failure, "migrations", fmt.Sprintf("%d applied, %d missing", applied, missing), apply, "migrate up, as the owner of the schema; migrate plan says what it does")
	default:
		e.fine("migrations", "all %d applied, checksums equal", applied)
		return true
	}
	return false
}

func (e *examination) namespace() {
	switch {
	case e.Manifest == nil:
		e.skip("namespace", "not looked at: no manifest names it")
		return
	case errors.Is(e.Opened, store.ErrNoNamespace):
		e.add(Failure, "namespace", sentence(e.Opened), "read commands end with 13", "output create, source load or a role initialises it; check AMENDS_DATABASE_URL")
		return
	case errors.Is(e.Opened, store.ErrConfig):
		e.add(Failure, "namespace", sentence(e.Opened), "a configuration never changes; every start ends with 13", "use the manifest of this namespace; another configuration is another namespace")
		return
	case e.Opened != nil:
		e.add(Failure, "namespace", sentence(e.Opened), "it cannot be read", "check the grants of this role")
		return
	}
	e.fine("namespace", "exists with this configuration")
	if e.Binding != nil {
		e.add(Failure, "binding", sentence(e.Binding), "every start ends with 13", "use the manifest that output create printed; the same command prints it again")
	} else if e.Manifest.Output != nil {
		e.fine("binding", "the database has the manifest's")
	}
}

// grants says which jobs the role may do: those of amends grants, each of which reads everything.
func (e *examination) grants(s *checkup.Server) {
	if !s.Schema {
		e.when(!s.Usable, Failure, "grants", "role "+s.Role+yes(s.Usable, " may", " may not")+" create the schema", "migrations cannot be applied by this role", "GRANT CREATE ON DATABASE "+s.Database+" TO "+s.Role+", or migrate as another role")
		return
	}
	have := map[string]checkup.Privilege{}
	var unread []string
	for _, p := range s.Privileges {
		have[p.Table] = p
		if !p.Select {
			unread = append(unread, p.Table)
		}
	}
	if !s.Usable || len(unread) > 0 {
		e.add(Failure, "grants", "role "+s.Role+" may not "+yes(s.Usable, "read "+strings.Join(unread, ", "), "use schema amends"), "every job reads everything", "amends grants prints a role for each job; make "+s.Role+" a member of one")
		return
	}
	var may, lacks []string
	for _, r := range grants.Roles() {
		if missing := lacking(r, have); len(missing) > 0 {
			lacks = append(lacks, r.Name+" lacks "+strings.Join(missing, ", "))
			continue
		}
		may = append(may, r.Name)
	}
	e.when(len(lacks) > 0, Warning, "grants", "role "+s.Role+" is enough for: "+strings.Join(may, ", "), strings.Join(lacks, "; "), "fine if this role has one job; amends grants prints what each needs")
	if slices.Contains(may, "view") {
		e.when(!s.Temporary, Warning, "temporary tables", yes(s.Temporary, "allowed", "not allowed"), "the view writes large pages slower without them", "GRANT TEMPORARY ON DATABASE "+s.Database+" TO "+s.Role)
	}
}

func lacking(r grants.Role, have map[string]checkup.Privilege) []string {
	var missing []string
	for _, t := range r.Tables {
		p := have[t.Table]
		for _, what := range t.May {
			if granted := map[string]bool{"INSERT": p.Insert, "UPDATE": p.Update, "DELETE": p.Delete}; !granted[what] {
				missing = append(missing, what+" on "+t.Table)
			}
		}
	}
	return missing
}

// leases looks for work that nobody holds, and for what stopped.
func (e *examination) leases() {
	p := e.Progress
	switch {
	case p == nil && e.ProgressError != nil:
		e.add(Failure, "progress", sentence(e.ProgressError), "the namespace cannot be read", "see the message")
		return
	case p == nil:
		e.skip("leases", "not looked at: the namespace could not be opened")
		return
	}
	idle := map[string]int64{}
	bound, stopped := false, 0
	for i := range p.Partitions {
		one := &p.Partitions[i]
		if one.Relay == nil || one.View == nil {
			continue
		}
		bound = true
		if one.Relay.Holder == "" && one.Outbox.Outputs > 0 {
			idle["relay"]++
		}
		if one.View.Holder == "" && one.Unapplied.Outputs > 0 && one.Stop == nil {
			idle["view"]++
		}
		if one.Stop != nil {
			stopped++
		}
	}
	if bound {
		for _, role := range []string{"relay", "view"} {
			e.when(idle[role] > 0, Warning, role+" leases", yes(idle[role] > 0, phrase.Counted(int(idle[role]), "partition")+" with work and no holder", "no work without a holder"),
				"its outputs wait until one runs", "run -role "+role)
		}
		e.when(stopped > 0, Failure, "stopped", yes(stopped > 0, phrase.Counted(stopped, "partition")+" stopped by a protocol error", "no partition is stopped"), "it stays stopped for ever, restarts included; the view shows old rows there", "view show tells the record; rebuild makes a new view")
	}
}
