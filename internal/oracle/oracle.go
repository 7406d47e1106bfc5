package oracle

import "amends/internal/ledger"

// Oracle holds what the records added so far say. It is not safe for concurrent use; as a key lives on exactly one
// partition, one Oracle per partition can work side by side.
type Oracle struct {
	open       *Terms
	listed     map[ledger.StockKey]placed
	keys       map[ledger.StockKey]*key
	spelled    map[string]*key // by the first spelling of the broker key that was seen valid: spares most decoding
	counts     Counts
	origin     ledger.Day
	partitions int32
}

// key is the state of one stock key.
type key struct {
	placed
	name         ledger.StockKey
	index        map[string]int32 // transaction ids to positions in transactions
	transactions []transaction
	contested    map[int32]struct{} // positions of the ambiguous transactions
	days         []total            // by day
	last         ledger.Offset      // of the last valid record
}

// Counts are how many records were added, all 0 or more.
type Counts struct {
	Records  int64    // all of them
	Rejected int64    // those with a code
	ByCode   [9]int64 // those with each code, by ledger.Rejection; [0] is the valid ones
	ByClass  [6]int64 // the valid ones of each class, by ledger.Class; [0] is 0
}

// Verdict is what the oracle makes of one record: a rejection code (S3), or an assertion and its class (S4).
type Verdict struct {
	Assertion ledger.Assertion
	Rejection ledger.Rejection
	Class     ledger.Class
}

// New returns an oracle that has seen nothing, for a valid configuration.
func New(cfg Config) *Oracle {
	o := &Oracle{open: cfg.Open, origin: cfg.Origin, partitions: cfg.Partitions,
		listed: make(map[ledger.StockKey]placed, len(cfg.Keys)), keys: make(map[ledger.StockKey]*key), spelled: make(map[string]*key)}
	for _, k := range cfg.Keys {
		o.listed[k.Key] = placed{terms: k.Terms, partition: k.Partition}
	}
	return o
}

// Add takes the next record of partition p: its offset, raw key and raw value, nil where absent. Records of a partition
// are added in offset order, each once; offsets may have gaps (S13). Key and value are not kept.
func (o *Oracle) Add(p ledger.Partition, offset ledger.Offset, rawKey, value []byte) Verdict {
	o.counts.Records++
	var d decoded
	k, code := o.judge(p, rawKey, value, &d)
	o.counts.ByCode[code]++
	if code != 0 {
		o.counts.Rejected++
		return Verdict{Rejection: code}
	}
	t, class := k.record(&d, offset)
	o.counts.ByClass[class]++
	return Verdict{Class: class, Assertion: ledger.Assertion{Key: k.name, TxnID: t, Revision: d.revision, Payload: d.payload}}
}

// Counts returns how many records were added so far.
func (o *Oracle) Counts() Counts { return o.counts }

// judge applies S3 in its order and returns the state of the record's key.
func (o *Oracle) judge(p ledger.Partition, rawKey, value []byte, d *decoded) (*key, ledger.Rejection) {
	if len(rawKey) > ledger.MaxKeyBytes {
		return nil, ledger.TooLarge
	}
	if code := decodeValue(value, d); code != 0 {
		return nil, code
	}
	if d.payload.State == ledger.Active && (d.payload.Day < o.origin || d.payload.Day-o.origin >= ledger.HorizonDays) {
		return nil, ledger.OutOfHorizon
	}
	if k, ok := o.spelled[string(rawKey)]; ok && k.name.Item == string(d.item) && k.name.Location == string(d.location) {
		if k.partition != p {
			return nil, ledger.Routing
		}
		return k, 0
	}
	k, known := o.keys[ledger.StockKey{Item: string(d.item), Location: string(d.location)}]
	if !known {
		name := ledger.StockKey{Item: string(d.item), Location: string(d.location)}
		where, ok := o.place(name)
		if !ok {
			return nil, ledger.UnknownKey
		}
		k = &key{placed: where, name: name}
	}
	item, location, ok := decodeKey(rawKey)
	switch {
	case !ok || string(item) != k.name.Item || string(location) != k.name.Location:
		return nil, ledger.KeyMismatch
	case k.partition != p:
		return nil, ledger.Routing
	}
	if !known {
		k.index = make(map[string]int32)
		o.keys[k.name] = k
		o.spelled[string(rawKey)] = k
	}
	return k, 0
}

// record groups a valid record with its transaction and carries what it changes to the days. It returns the id as kept.
func (k *key) record(d *decoded, offset ledger.Offset) (string, ledger.Class) {
	k.last = offset
	c := claim{payload: d.payload, revision: d.revision}
	i, ok := k.index[string(d.txn)]
	if !ok {
		id := string(d.txn)
		k.index[id] = int32(len(k.transactions))
		k.transactions = append(k.transactions, transaction{id: id, top: c, offset: offset})
		if c.payload.State == ledger.Active {
			k.apply(c.payload, 1)
		}
		return id, ledger.Applied
	}
	t := &k.transactions[i]
	before, counted := t.active()
	class := t.record(c, offset)
	if class != ledger.Applied && class != ledger.Conflict {
		return t.id, class
	}
	after, counts := t.active()
	if counted && !(counts && after == before) {
		k.apply(before, -1)
	}
	if counts && !(counted && after == before) {
		k.apply(after, 1)
	}
	if t.contested {
		if k.contested == nil {
			k.contested = make(map[int32]struct{})
		}
		k.contested[i] = struct{}{}
	} else if len(k.contested) > 0 {
		delete(k.contested, i)
	}
	return t.id, class
}
