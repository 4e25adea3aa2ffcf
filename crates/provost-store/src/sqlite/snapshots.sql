-- Where each log's snapshots are. The kind is the one that such entries have in the log.
CREATE INDEX snapshots ON entries (actor, seq) WHERE kind = 'snapshot';
