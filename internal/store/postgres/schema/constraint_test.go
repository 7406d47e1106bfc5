package schema

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// violations try each constraint of the schema on the rows of populate: the name of the constraint, then the statement.
var violations = [][2]string{
	{"namespaces_partitions", `UPDATE amends.namespaces SET partitions = 0`},
	{"namespaces_partitions", `UPDATE amends.namespaces SET partitions = 1025`},
	{"namespaces_storage_format", `UPDATE amends.namespaces SET storage_format = 0`},
	{"namespaces_quantity_scale", `UPDATE amends.namespaces SET quantity_scale = 10`},
	{"namespaces_quantity_scale", `UPDATE amends.namespaces SET quantity_scale = -1`},
	{"namespaces_namespace", `UPDATE amends.namespaces SET namespace = 'Upper'`},
	{"namespaces_namespace", `UPDATE amends.namespaces SET namespace = repeat('a', 65)`},
	{"namespaces_namespace_key", `INSERT INTO amends.namespaces (partitions, storage_format, quantity_scale, namespace, source_topic, source_incarnation, digest, config)
		SELECT partitions, storage_format, quantity_scale, namespace, source_topic, source_incarnation, digest, config FROM amends.namespaces`},
	{"namespaces_source_topic", `UPDATE amends.namespaces SET source_topic = ''`},
	{"namespaces_source_incarnation", `UPDATE amends.namespaces SET source_incarnation = 'kafka:0'`},
	{"namespaces_digest", `UPDATE amends.namespaces SET config = '{"a":1}'`},
	{"namespaces_pkey", `INSERT INTO amends.namespaces (namespace_id, partitions, storage_format, quantity_scale, namespace, source_topic, source_incarnation, digest, config)
		OVERRIDING SYSTEM VALUE SELECT namespace_id, 1, 1, 0, 'new', 's', source_incarnation, digest, config FROM amends.namespaces`},
	{"partitions_partition", `UPDATE amends.partitions SET partition = 1024 WHERE partition = 1`},
	{"partitions_epoch", `UPDATE amends.partitions SET epoch = -1`},
	{"partitions_frontier", `UPDATE amends.partitions SET frontier = -1`},
	{"partitions_next_sequence", `UPDATE amends.partitions SET next_sequence = -1`},
	{"partitions_nonce", `UPDATE amends.partitions SET nonce = '\x00'`},
	{"partitions_pkey", `UPDATE amends.partitions SET partition = 0`},
	{"partitions_namespace_id_fkey", `UPDATE amends.partitions SET namespace_id = 99`},
	{"partitions_last", `UPDATE amends.partitions SET last_records = NULL WHERE partition = 0`},
	{"partitions_last", `UPDATE amends.partitions SET last_lock_ns = -1 WHERE partition = 0`},
	{"partitions_totals", `UPDATE amends.partitions SET commits = -1`},
	{"partitions_samples", `UPDATE amends.partitions SET samples = '{1}'`},
	{"partitions_samples", `UPDATE amends.partitions SET samples = array_fill(1::bigint, ARRAY[297])`},
	{"keys_key_id", `UPDATE amends.keys SET key_id = -1`},
	{"keys_partition", `UPDATE amends.keys SET partition = -1`},
	{"keys_item", `UPDATE amends.keys SET item = ''`},
	{"keys_location", `UPDATE amends.keys SET location = convert_to(repeat('x', 513), 'UTF8')`},
	{"keys_identity", `INSERT INTO amends.keys SELECT key_id + 1, namespace_id, 1, item, location FROM amends.keys`},
	{"keys_pkey", `INSERT INTO amends.keys SELECT key_id, namespace_id, partition, 'other', location FROM amends.keys`},
	{"journal_source_offset", `UPDATE amends.journal SET source_offset = -1 WHERE source_offset = 2`},
	{"journal_partition", `UPDATE amends.journal SET partition = 1024`},
	{"journal_digest", `UPDATE amends.journal SET digest = '\x00'`},
	{"journal_decided", `UPDATE amends.journal SET class = NULL WHERE source_offset = 0`},
	{"journal_decided", `UPDATE amends.journal SET class = 6 WHERE source_offset = 0`},
	{"journal_decided", `UPDATE amends.journal SET rejection = 2 WHERE source_offset = 0`},
	{"journal_decided", `UPDATE amends.journal SET rejection = 9 WHERE source_offset = 2`},
	{"journal_decided", `UPDATE amends.journal SET key_id = NULL WHERE source_offset = 0`},
	{"journal_payload", `UPDATE amends.journal SET day = NULL WHERE source_offset = 0`},
	{"journal_payload", `UPDATE amends.journal SET kind = 1 WHERE source_offset = 1`},
	{"journal_key_id", `UPDATE amends.journal SET key_id = 1 WHERE source_offset = 0`},
	{"journal_txn_id", `UPDATE amends.journal SET txn_id = '' WHERE source_offset = 0`},
	{"journal_revision", `UPDATE amends.journal SET revision = 0 WHERE source_offset = 0`},
	{"journal_state", `UPDATE amends.journal SET state = 3 WHERE source_offset = 1`},
	{"journal_quantity", `UPDATE amends.journal SET quantity = 0 WHERE source_offset = 0`},
	{"journal_quantity", `UPDATE amends.journal SET quantity = -1, kind = 4 WHERE source_offset = 0`},
	{"journal_quantity", `UPDATE amends.journal SET kind = 5 WHERE source_offset = 0`},
	{"journal_day", `UPDATE amends.journal SET day = '0001-12-31 BC' WHERE source_offset = 0`},
	{"journal_day", `UPDATE amends.journal SET day = '10000-01-01' WHERE source_offset = 0`},
	{"journal_outputs", `UPDATE amends.journal SET outputs = 0 WHERE source_offset = 0`},
	{"journal_outputs", `UPDATE amends.journal SET outputs = 73052 WHERE source_offset = 0`},
	{"journal_outputs", `UPDATE amends.journal SET sequence = 9223372036854775806 WHERE source_offset = 0`},
	{"journal_outputs", `UPDATE amends.journal SET body = '\x01' WHERE source_offset = 1`},
	{"journal_pkey", `UPDATE amends.journal SET source_offset = 2`},
	{"quarantine_source_offset", `UPDATE amends.quarantine SET source_offset = -1`},
	{"quarantine_partition", `UPDATE amends.quarantine SET partition = 1024`},
	{"quarantine_rejection", `UPDATE amends.quarantine SET rejection = 0`},
	{"quarantine_key_sha256", `UPDATE amends.quarantine SET key_sha256 = '\x00'`},
	{"quarantine_value_sha256", `UPDATE amends.quarantine SET value_sha256 = '\x00'`},
	{"quarantine_key", `UPDATE amends.quarantine SET key_length = 5`},
	{"quarantine_value", `UPDATE amends.quarantine SET value_length = 99999, rejection = 1`},
	{"quarantine_pkey", `INSERT INTO amends.quarantine SELECT * FROM amends.quarantine`},
	{"snapshots_key_id", `UPDATE amends.snapshots SET key_id = -1`},
	{"snapshots_frontier", `UPDATE amends.snapshots SET frontier = 0`},
	{"snapshots_rows", `UPDATE amends.snapshots SET rows = -1`},
	{"snapshots_partition", `UPDATE amends.snapshots SET partition = 1024`},
	{"snapshots_pkey", `INSERT INTO amends.snapshots SELECT * FROM amends.snapshots`},
	{"output_binding_partitions", `UPDATE amends.output_binding SET partitions = 0`},
	{"output_binding_topic", `UPDATE amends.output_binding SET topic = ''`},
	{"output_binding_incarnation", `UPDATE amends.output_binding SET incarnation = 'kafka:XX'`},
	{"output_binding_namespace_id_fkey", `UPDATE amends.output_binding SET namespace_id = 99`},
	{"output_binding_pkey", `INSERT INTO amends.output_binding SELECT namespace_id, partitions, topic, 'kafka:ff112233445566778899aabbccddee00' FROM amends.output_binding`},
	{"output_binding_incarnation_key", `WITH n AS (INSERT INTO amends.namespaces (partitions, storage_format, quantity_scale, namespace, source_topic, source_incarnation,
		digest, config) SELECT 1, 1, 0, 'second', 's', source_incarnation, digest, config FROM amends.namespaces RETURNING namespace_id)
		INSERT INTO amends.output_binding SELECT n.namespace_id, partitions, topic, incarnation FROM amends.output_binding, n`},
	{"relay_progress_partition", `UPDATE amends.relay_progress SET partition = 1024 WHERE partition = 1`},
	{"relay_progress_term", `UPDATE amends.relay_progress SET term = -1`},
	{"relay_progress_next_sequence", `UPDATE amends.relay_progress SET next_sequence = -1`},
	{"relay_progress_output_offset", `UPDATE amends.relay_progress SET next_sequence = 6`},
	{"relay_progress_source_offset", `UPDATE amends.relay_progress SET source_offset = -1`},
	{"relay_progress_nonce", `UPDATE amends.relay_progress SET nonce = ''`},
	{"relay_progress_pkey", `UPDATE amends.relay_progress SET partition = 0`},
	{"relay_progress_namespace_id_fkey", `UPDATE amends.relay_progress SET namespace_id = 99`},
	{"receipts_first_sequence", `UPDATE amends.receipts SET first_sequence = -1`},
	{"receipts_next_sequence", `UPDATE amends.receipts SET next_sequence = 0`},
	{"receipts_output_offset", `UPDATE amends.receipts SET output_offset = -1`},
	{"receipts_source_offset", `UPDATE amends.receipts SET source_offset = -1`},
	{"receipts_partition", `UPDATE amends.receipts SET partition = -1`},
	{"receipts_pkey", `INSERT INTO amends.receipts SELECT first_sequence, 3, 9, 0, acknowledged_at, 1, 0 FROM amends.receipts`},
	{"receipts_next_identity", `INSERT INTO amends.receipts SELECT 1, 2, 9, 0, acknowledged_at, 1, 0 FROM amends.receipts`},
	{"receipts_offset_identity", `INSERT INTO amends.receipts SELECT 1, 3, 3, 0, acknowledged_at, 1, 0 FROM amends.receipts`},
	{"view_progress_partition", `UPDATE amends.view_progress SET partition = 1024 WHERE partition = 1`},
	{"view_progress_term", `UPDATE amends.view_progress SET term = -1`},
	{"view_progress_output_offset", `UPDATE amends.view_progress SET next_sequence = 6`},
	{"view_progress_next_sequence", `UPDATE amends.view_progress SET next_sequence = -1`},
	{"view_progress_cause_offset", `UPDATE amends.view_progress SET cause_offset = -2`},
	{"view_progress_nonce", `UPDATE amends.view_progress SET nonce = ''`},
	{"view_progress_pkey", `UPDATE amends.view_progress SET partition = 0`},
	{"view_progress_namespace_id_fkey", `UPDATE amends.view_progress SET namespace_id = 99`},
	{"view_keys_key_id", `UPDATE amends.view_keys SET key_id = -1`},
	{"view_keys_partition", `UPDATE amends.view_keys SET partition = 1024`},
	{"view_keys_item", `UPDATE amends.view_keys SET item = convert_to(repeat('x', 513), 'UTF8')`},
	{"view_keys_location", `UPDATE amends.view_keys SET location = ''`},
	{"view_keys_identity", `INSERT INTO amends.view_keys SELECT key_id + 1, namespace_id, 1, item, location FROM amends.view_keys`},
	{"view_keys_pkey", `INSERT INTO amends.view_keys SELECT key_id, namespace_id, partition, 'other', location FROM amends.view_keys`},
	{"view_rows_version", `UPDATE amends.view_rows SET version = 0`},
	{"view_rows_sequence", `UPDATE amends.view_rows SET sequence = -1`},
	{"view_rows_cause_offset", `UPDATE amends.view_rows SET cause_offset = -1`},
	{"view_rows_cause_revision", `UPDATE amends.view_rows SET cause_revision = 0`},
	{"view_rows_partition", `UPDATE amends.view_rows SET partition = 1024`},
	{"view_rows_repair", `UPDATE amends.view_rows SET repair_index = 2`},
	{"view_rows_kind", `UPDATE amends.view_rows SET kind = 0`},
	{"view_rows_cause_txn_id", `UPDATE amends.view_rows SET cause_txn_id = ''`},
	{"view_rows_day", `UPDATE amends.view_rows SET day = 'infinity' WHERE kind = 1`},
	{"view_rows_day", `UPDATE amends.view_rows SET day = '2026-01-01' WHERE kind = 3`},
	{"view_rows_day", `UPDATE amends.view_rows SET day = '10000-01-01' WHERE kind = 1`},
	{"view_rows_payload", `UPDATE amends.view_rows SET close = NULL WHERE kind = 1`},
	{"view_rows_payload", `UPDATE amends.view_rows SET present = false WHERE kind = 1`},
	{"view_rows_payload", `UPDATE amends.view_rows SET status = NULL WHERE kind = 3`},
	{"view_rows_payload", `UPDATE amends.view_rows SET kind = 2 WHERE kind = 1`},
	{"view_rows_pkey", `INSERT INTO amends.view_rows SELECT * FROM amends.view_rows`},
	{"leases_partition", `UPDATE amends.leases SET partition = 1024`},
	{"leases_term", `UPDATE amends.leases SET term = -1`},
	{"leases_role", `UPDATE amends.leases SET role = 'worker'`},
	{"leases_namespace_id_fkey", `UPDATE amends.leases SET namespace_id = 99`},
	{"leases_pkey", `INSERT INTO amends.leases SELECT * FROM amends.leases`},
	{"protocol_errors_output_offset", `UPDATE amends.protocol_errors SET output_offset = -1`},
	{"protocol_errors_partition", `UPDATE amends.protocol_errors SET partition = 1024`},
	{"protocol_errors_reason", `UPDATE amends.protocol_errors SET reason = ''`},
	{"protocol_errors_pkey", `INSERT INTO amends.protocol_errors SELECT * FROM amends.protocol_errors`},
	{"verifications_keys", `UPDATE amends.verifications SET keys = -1`},
	{"verifications_outputs", `UPDATE amends.verifications SET outputs = -1`},
	{"verifications_differences", `UPDATE amends.verifications SET differences = -1`},
	{"verifications_status", `UPDATE amends.verifications SET status = 'FINE'`},
	{"verifications_boundary", `UPDATE amends.verifications SET boundary = '{}'`},
	{"verifications_namespace_id_fkey", `UPDATE amends.verifications SET namespace_id = 99`},
	{"verifications_pkey", `INSERT INTO amends.verifications OVERRIDING SYSTEM VALUE SELECT * FROM amends.verifications`},
	{"audit_state_frontier", `UPDATE amends.audit_state SET frontier = -1`},
	{"audit_state_next_sequence", `UPDATE amends.audit_state SET next_sequence = -1`},
	{"audit_state_cause_offset", `UPDATE amends.audit_state SET cause_offset = -2`},
	{"audit_state_output_offset", `UPDATE amends.audit_state SET output_offset = 1`},
	{"audit_state_differences", `UPDATE amends.audit_state SET differences = -1`},
	{"audit_state_partition", `UPDATE amends.audit_state SET partition = 1024`},
	{"audit_state_status", `UPDATE amends.audit_state SET status = 'FINE'`},
	{"audit_state_saved", `UPDATE amends.audit_state SET state_format = NULL`},
	{"audit_state_saved", `UPDATE amends.audit_state SET state_chunks = 129`},
	{"audit_state_saved", `UPDATE amends.audit_state SET state_checksum = '\x00'`},
	{"audit_state_server", `UPDATE amends.audit_state SET timeline = NULL`},
	{"audit_state_server", `UPDATE amends.audit_state SET timeline = 0`},
	{"audit_state_namespace_id_fkey", `UPDATE amends.audit_state SET namespace_id = 99`},
	{"audit_state_pkey", `INSERT INTO amends.audit_state SELECT * FROM amends.audit_state`},
	{"audit_chunks_partition", `UPDATE amends.audit_chunks SET partition = -1`},
	{"audit_chunks_chunk", `UPDATE amends.audit_chunks SET chunk = 128`},
	{"audit_chunks_data", `UPDATE amends.audit_chunks SET data = ''`},
	{"audit_chunks_pkey", `INSERT INTO amends.audit_chunks SELECT * FROM amends.audit_chunks`},
	{"rebuilds_topic", `UPDATE amends.rebuilds SET topic = ''`},
	{"rebuilds_incarnation", `UPDATE amends.rebuilds SET incarnation = 'kafka:0'`},
	{"rebuilds_phase", `UPDATE amends.rebuilds SET phase = 'half'`},
	{"rebuilds_status", `UPDATE amends.rebuilds SET phase = 'done', finished_at = started_at, status = 'DRIFT'`},
	{"rebuilds_origin", `UPDATE amends.rebuilds SET origin_id = namespace_id`},
	{"rebuilds_created", `UPDATE amends.rebuilds SET incarnation = NULL`},
	{"rebuilds_created", `UPDATE amends.rebuilds SET phase = 'create'`},
	{"rebuilds_finished", `UPDATE amends.rebuilds SET phase = 'done', status = 'PASS'`},
	{"rebuilds_finished", `UPDATE amends.rebuilds SET phase = 'done', finished_at = started_at`},
	{"rebuilds_finished", `UPDATE amends.rebuilds SET finished_at = started_at`},
	{"rebuilds_namespace_id_fkey", `UPDATE amends.rebuilds SET namespace_id = 99`},
	{"rebuilds_origin_id_fkey", `UPDATE amends.rebuilds SET origin_id = 99`},
	{"rebuilds_pkey", `INSERT INTO amends.rebuilds SELECT * FROM amends.rebuilds`},
	{"schema_migrations_version", `UPDATE amends.schema_migrations SET version = 0 WHERE version = 1`},
	{"schema_migrations_checksum", `UPDATE amends.schema_migrations SET checksum = ''`},
	{"schema_migrations_pkey", `UPDATE amends.schema_migrations SET version = 1`},
}

func TestEveryConstraintRefusesWhatTheContractExcludes(t *testing.T) {
	ctx := context.Background()
	pool, conn := openEmpty(t)
	if err := Migrate(ctx, pool); err != nil {
		t.Fatal(err)
	}
	for version := 1; version <= len(migrations()); version++ {
		run(t, conn, populate[version])
	}
	tried := map[string]bool{}
	for _, v := range violations {
		tried[v[0]] = true
		_, err := conn.Exec(ctx, v[1])
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || !strings.HasPrefix(pg.Code, "23") || pg.ConstraintName != v[0] {
			t.Errorf("%s\ngot %v, want a violation of %s", v[1], err, v[0])
		}
	}
	rows, err := conn.Query(ctx, `SELECT conname FROM pg_constraint WHERE connamespace = 'amends'::regnamespace AND contype IN ('c', 'u', 'p', 'f') ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !tried[name] {
			t.Errorf("constraint %s is not tried", name)
		}
	}
}
