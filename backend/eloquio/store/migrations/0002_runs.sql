CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL,
    status TEXT NOT NULL CHECK (
        status IN ('queued', 'running', 'completed', 'cancelled', 'interrupted', 'failed')
    ),
    created REAL NOT NULL,
    ended REAL,
    finish_reason TEXT,
    usage TEXT,
    error TEXT,
    -- The longest comes last: what only asks for the others needn't read past it.
    request BLOB NOT NULL
) STRICT;

CREATE TABLE run_events (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    first_number INTEGER NOT NULL,
    last_number INTEGER NOT NULL CHECK (last_number >= first_number),
    -- One JSON text a line.
    events BLOB NOT NULL,
    PRIMARY KEY (run_id, first_number)
) STRICT;
