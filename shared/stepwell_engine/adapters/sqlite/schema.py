"""The tables of the embedded home's database."""

from typing import Final

VERSION: Final = (
    2  # PRAGMA user_version; raise it with every change that older versions cannot read
)

# What makes a file of the version before one of this version.
UPGRADES: Final = {
    2: (
        "ALTER TABLE heads ADD COLUMN claimed_at INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE heads ADD COLUMN cascade INTEGER NOT NULL DEFAULT 0",
    ),
}

# What came without a new VERSION, for older versions neither read nor miss it: they insert without
# naming these columns, and leave every run that uses the overflow alone, by its format.
ADDED_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS overflow (
        run_id TEXT NOT NULL,
        n INTEGER NOT NULL,
        id TEXT NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        at INTEGER NOT NULL,
        body BLOB,
        blob TEXT,
        key TEXT,
        void INTEGER NOT NULL,
        PRIMARY KEY (run_id, n)
    ) STRICT, WITHOUT ROWID
    """,
)
ADDED_COLUMNS: Final = (
    ("heads", "overflow_last", "INTEGER NOT NULL DEFAULT 0"),
    ("heads", "overflow_count", "INTEGER NOT NULL DEFAULT 0"),
    ("heads", "wants", "TEXT NOT NULL DEFAULT ''"),
    ("heads", "wants_seq", "INTEGER NOT NULL DEFAULT 0"),
    ("heads", "alone", "INTEGER NOT NULL DEFAULT 0"),
    ("heads", "alone_losses", "INTEGER NOT NULL DEFAULT 0"),
    ("heads", "deadline", "INTEGER"),
    ("heads", "generation", "INTEGER NOT NULL DEFAULT 0"),
    ("heads", "told", "INTEGER NOT NULL DEFAULT 0"),
    ("overflow", "generation", "INTEGER NOT NULL DEFAULT 0"),
    ("deliveries", "n", "INTEGER"),  # NULL: the message went into the head
)

SCHEMA: Final = (
    """
    CREATE TABLE heads (
        run_id TEXT PRIMARY KEY NOT NULL,
        project TEXT NOT NULL,
        workflow TEXT NOT NULL,
        version INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        status TEXT NOT NULL,
        ended_at INTEGER,
        ready_at INTEGER NOT NULL,
        wake_at INTEGER,
        token TEXT,
        until INTEGER NOT NULL,
        claimed_at INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        commits INTEGER NOT NULL,
        lost INTEGER NOT NULL,
        journal BLOB NOT NULL,
        mails INTEGER NOT NULL,
        input BLOB,
        idempotency_key TEXT,
        test INTEGER NOT NULL,
        parent TEXT,
        depth INTEGER NOT NULL,
        owes INTEGER NOT NULL,
        cascade INTEGER NOT NULL,
        format INTEGER NOT NULL
    ) STRICT
    """,
    # What is true of the whole database, by name.
    "CREATE TABLE meta (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT",
    "CREATE INDEX heads_due ON heads (wake_at, run_id) WHERE wake_at IS NOT NULL",
    "CREATE INDEX heads_of_workflow ON heads (project, workflow, run_id)",
    """
    CREATE TABLE mail (
        run_id TEXT NOT NULL,
        id TEXT NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        at INTEGER NOT NULL,
        body BLOB,
        blob TEXT,
        PRIMARY KEY (run_id, id)
    ) STRICT
    """,
    # Keys that messages were delivered with, and when first; they outlive the messages.
    """
    CREATE TABLE deliveries (
        run_id TEXT NOT NULL,
        key TEXT NOT NULL,
        at INTEGER NOT NULL,
        PRIMARY KEY (run_id, key)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE blobs (
        run_id TEXT NOT NULL,
        name TEXT NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (run_id, name)
    ) STRICT
    """,
    """
    CREATE TABLE keys (
        project TEXT NOT NULL,
        workflow TEXT NOT NULL,
        key TEXT NOT NULL,
        run_id TEXT NOT NULL,
        PRIMARY KEY (project, workflow, key)
    ) STRICT, WITHOUT ROWID
    """,
    # A dropped queue keeps its row, so that no message id comes twice.
    """
    CREATE TABLE queues (
        number INTEGER PRIMARY KEY,
        project TEXT NOT NULL,
        queue TEXT NOT NULL,
        visibility INTEGER NOT NULL,
        max_receives INTEGER NOT NULL,
        last_id INTEGER NOT NULL,
        dropped INTEGER NOT NULL,
        format INTEGER NOT NULL,
        UNIQUE (project, queue)
    ) STRICT
    """,
    """
    CREATE TABLE messages (
        queue INTEGER NOT NULL,
        archived INTEGER NOT NULL,
        id INTEGER NOT NULL,
        sent_at INTEGER NOT NULL,
        receives INTEGER NOT NULL,
        visible_at INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (queue, archived, id)
    ) STRICT
    """,
    """
    CREATE TABLE projects (
        ref TEXT PRIMARY KEY NOT NULL,
        organization TEXT NOT NULL,
        created_at INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE grants (
        token_hash TEXT PRIMARY KEY NOT NULL,
        kind TEXT NOT NULL,
        organization TEXT NOT NULL,
        role TEXT,
        project TEXT,
        expires_at INTEGER
    ) STRICT
    """,
    """
    CREATE TABLE published (
        project TEXT NOT NULL,
        workflow TEXT NOT NULL,
        version INTEGER NOT NULL,
        enabled INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        format INTEGER NOT NULL,
        document BLOB NOT NULL,
        PRIMARY KEY (project, workflow, version)
    ) STRICT
    """,
    """
    CREATE TABLE resources (
        project TEXT NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        config BLOB NOT NULL,
        sealed TEXT,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (project, kind, name)
    ) STRICT
    """,
)
