BEGIN TRANSACTION;
CREATE TABLE blobs (
        run_id TEXT NOT NULL,
        name TEXT NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (run_id, name)
    ) STRICT
    ;
INSERT INTO "blobs" VALUES('01890000-0000-7000-8000-00000000000a','mail/m2',X'7B226C61726765223A747275657D');
CREATE TABLE deliveries (
        run_id TEXT NOT NULL,
        key TEXT NOT NULL,
        at INTEGER NOT NULL,
        PRIMARY KEY (run_id, key)
    ) STRICT, WITHOUT ROWID
    ;
INSERT INTO "deliveries" VALUES('01890000-0000-7000-8000-00000000000a','approval-42',1800000000014);
CREATE TABLE grants (
        token_hash TEXT PRIMARY KEY NOT NULL,
        kind TEXT NOT NULL,
        organization TEXT NOT NULL,
        role TEXT,
        project TEXT,
        expires_at INTEGER
    ) STRICT
    ;
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
        format INTEGER NOT NULL
    ) STRICT
    ;
INSERT INTO "heads" VALUES('01890000-0000-7000-8000-00000000000a','shop','order',3,1800000000001,'waiting',1800000000002,0,1800000000004,'aaaaaaaaaaaa',1800000000005,7,7,8,X'7B226A6F75726E616C223A317D',3,X'7B226F72646572223A31377D','order-17',1,'01890000-0000-7000-8000-00000000000b',1,1,1);
CREATE TABLE keys (
        project TEXT NOT NULL,
        workflow TEXT NOT NULL,
        key TEXT NOT NULL,
        run_id TEXT NOT NULL,
        PRIMARY KEY (project, workflow, key)
    ) STRICT, WITHOUT ROWID
    ;
INSERT INTO "keys" VALUES('shop','order','order-17','01890000-0000-7000-8000-00000000000a');
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
    ;
INSERT INTO "mail" VALUES('01890000-0000-7000-8000-00000000000a','m1','signal','paid',1800000000009,X'7B22616D6F756E74223A34397D',NULL);
INSERT INTO "mail" VALUES('01890000-0000-7000-8000-00000000000a','m2','child','',1800000000010,NULL,'mail/m2');
INSERT INTO "mail" VALUES('01890000-0000-7000-8000-00000000000a','m3','signal','approved',1800000000014,X'6E756C6C',NULL);
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
    ;
INSERT INTO "messages" VALUES(1,0,1,1800000000011,1,1800000030012,X'7B226F72646572223A31387D');
CREATE TABLE meta (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT;
CREATE TABLE projects (
        ref TEXT PRIMARY KEY NOT NULL,
        organization TEXT NOT NULL,
        created_at INTEGER NOT NULL
    ) STRICT
    ;
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
    ;
INSERT INTO "published" VALUES('shop','order',1,1,1800000000013,1,X'7B227374657073223A5B5D7D');
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
    ;
INSERT INTO "queues" VALUES(1,'shop','orders',30000,3,1,0,1);
CREATE TABLE resources (
        project TEXT NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        config BLOB NOT NULL,
        sealed TEXT,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (project, kind, name)
    ) STRICT
    ;
CREATE INDEX heads_due ON heads (wake_at, run_id) WHERE wake_at IS NOT NULL;
CREATE INDEX heads_of_workflow ON heads (project, workflow, run_id);
PRAGMA user_version = 1;
COMMIT;
