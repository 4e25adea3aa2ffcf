-- A run's or session's name, and the number that the other tables know it by.
CREATE TABLE actors (
    id  INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
) STRICT;

-- The logs, in the order in which they were written: what many sessions write at once shares pages. id: counts all
-- entries that were ever written, and never a number twice; in this order the entries of a run are shown. run: the number
-- of the run's own actor. body: the entry's own fields as JSON, written in format v. chain: the hash of the log up to
-- here. state: of a snapshot, the hash of its body.
CREATE TABLE entries (
    id      INTEGER PRIMARY KEY,
    run     INTEGER NOT NULL,
    actor   INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    v       INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    elapsed INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    body    TEXT NOT NULL,
    chain   BLOB NOT NULL,
    state   BLOB
) STRICT;

-- The ranges of entries in which those of a log are: from the id start, which is the log's entry seq, to before the
-- id stop. Those of one log don't overlap. log: the log's number; the run's own, negative, for the entries of all
-- logs of a run, and seq is an id then. An index with each entry would change two more pages with each commit.
CREATE TABLE pieces (
    log   INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    start INTEGER NOT NULL,
    stop  INTEGER NOT NULL,
    PRIMARY KEY (log, seq)
) STRICT, WITHOUT ROWID;

-- Where each log's snapshots are. The kind is the one that such entries have in the log.
CREATE INDEX snapshots ON entries (actor, seq) WHERE kind = 'snapshot';

-- Where each log ends. A second witness: with what the other tables say alone, entries that an index no longer leads to would
-- not be missed. sum: the hash of the other columns.
CREATE TABLE heads (
    key   TEXT PRIMARY KEY,
    actor INTEGER NOT NULL,
    head  INTEGER NOT NULL,
    chain BLOB NOT NULL,
    sum   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Open effects. run: the number of the run's own actor; due_at: only of timers; sum: the hash of what is to be done and where.
CREATE TABLE effects (
    run    INTEGER NOT NULL,
    actor  INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    epoch  INTEGER,
    abort  INTEGER NOT NULL,
    due_at INTEGER,
    kind   TEXT NOT NULL,
    sum    INTEGER NOT NULL,
    PRIMARY KEY (run, actor, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE posts (
    actor INTEGER NOT NULL,
    dedup TEXT NOT NULL,
    PRIMARY KEY (actor, dedup)
) STRICT, WITHOUT ROWID;

-- What a list shows of a run: derived from its log, and read from there where the row isn't what its sum says.
CREATE TABLE runs (
    run        TEXT PRIMARY KEY,
    started_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    turns      INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    cost       INTEGER NOT NULL,
    outcome    TEXT,
    model      TEXT NOT NULL,
    workspace  TEXT NOT NULL,
    goal       TEXT NOT NULL,
    uncertain_tokens INTEGER NOT NULL,
    uncertain_cost   INTEGER NOT NULL,
    elapsed    INTEGER NOT NULL,
    sum        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_start ON runs (started_at, run);

-- A second witness for the order of the list: damage of one index would hide a run.
CREATE INDEX runs_by_start_again ON runs (started_at, run);

CREATE TABLE owners (
    run   TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What processes request of runs that another process holds. answered: 0 while body is the request, 1 when it is the reply.
-- id: no number twice, so that a sender never takes another's reply for its own. sum: the hash of run, answered and body.
CREATE TABLE mailbox (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    run      TEXT NOT NULL,
    answered INTEGER NOT NULL,
    body     TEXT NOT NULL,
    sum      INTEGER NOT NULL
) STRICT;

CREATE INDEX mailbox_waiting ON mailbox (run, id) WHERE answered = 0;

CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;

-- The greatest number of an entry that was given away, where that entry is no longer there.
CREATE TABLE given (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    entries INTEGER NOT NULL
) STRICT;

INSERT INTO given (one, entries) VALUES (1, 0);

-- Entries that were acknowledged and were not there at an opening. last: the one that was acknowledged last.
CREATE TABLE losses (
    id           INTEGER PRIMARY KEY,
    found_at     INTEGER NOT NULL,
    expected     INTEGER NOT NULL,
    found        INTEGER NOT NULL,
    last         TEXT NOT NULL,
    acknowledged INTEGER NOT NULL DEFAULT 0
) STRICT;
