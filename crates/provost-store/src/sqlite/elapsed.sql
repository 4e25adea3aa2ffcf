-- The run's elapsed time at each entry, in milliseconds.
ALTER TABLE entries ADD COLUMN elapsed INTEGER NOT NULL DEFAULT 0;
