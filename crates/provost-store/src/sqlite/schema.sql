-- A run's or session's name, and the number that the other tables know it by.
CREATE TABLE actors (
    id  INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
) STRICT;

-- The logs, in the order in which they were written: what many sessions write at once shares pages. The index
-- tells whose they are. body: the entry's own fields as JSON, written in format v.
CREATE TABLE entries (
    actor INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    v     INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    kind  TEXT NOT NULL,
    body  TEXT NOT NULL,
    UNIQUE (actor, seq)
) STRICT;

-- Open effects. run: the number of the run's own actor; due_at: only of timers.
CREATE TABLE effects (
    run    INTEGER NOT NULL,
    actor  INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    epoch  INTEGER,
    abort  INTEGER NOT NULL,
    due_at INTEGER,
    kind   TEXT NOT NULL,
    PRIMARY KEY (run, actor, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE posts (
    actor INTEGER NOT NULL,
    dedup TEXT NOT NULL,
    PRIMARY KEY (actor, dedup)
) STRICT, WITHOUT ROWID;

-- What a list shows of a run.
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
    goal       TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_start ON runs (started_at, run);

CREATE TABLE owners (
    run   TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;
