package serial

import _ "embed"

//go:embed schema.sql
var schemaSQL string

const (
	lockPartition = `SELECT next_sequence FROM serial.partitions WHERE partition = $1 AND frontier = $2 FOR UPDATE`
	readState     = `SELECT state FROM serial.key_state WHERE item = $1 AND location = $2`
	writeState    = `INSERT INTO serial.key_state (item, location, state) VALUES ($1, $2, $3)
		ON CONFLICT (item, location) DO UPDATE SET state = EXCLUDED.state`
	upsertOutput = `INSERT INTO serial.outputs (output_id, version, present, payload) VALUES ($1, $2, $3, $4)
		ON CONFLICT (output_id) DO UPDATE SET version = EXCLUDED.version, present = EXCLUDED.present, payload = EXCLUDED.payload`
	insertOutbox = `INSERT INTO serial.outbox (partition, sequence, key, envelope) VALUES ($1, $2, $3, $4)`
	advance      = `UPDATE serial.partitions SET frontier = $2, next_sequence = $3 WHERE partition = $1`
	nextPending  = `SELECT sequence, key, envelope FROM serial.outbox WHERE partition = $1 AND sequence = $2`
	writeReceipt = `INSERT INTO serial.receipts (partition, sequence, output_offset) VALUES ($1, $2, $3)`
	lockView     = `SELECT frontier FROM serial.view_positions WHERE partition = $1 FOR UPDATE`
	upsertView   = `INSERT INTO serial.view_rows (output_id, version, present, envelope) VALUES ($1, $2, $3, $4)
		ON CONFLICT (output_id) DO UPDATE SET version = EXCLUDED.version, present = EXCLUDED.present, envelope = EXCLUDED.envelope
		WHERE serial.view_rows.version < EXCLUDED.version`
	advanceView = `UPDATE serial.view_positions SET frontier = $2 WHERE partition = $1`
)
