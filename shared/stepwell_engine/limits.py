"""Every limit and default of the product, in one place. Times in ms, sizes in bytes."""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB
SECOND: Final = 1000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

# Definitions
MAX_STEPS: Final = 200
MAX_CHILDREN: Final = 200
MAX_DEFINITION: Final = 256 * KIB
MAX_TARGET: Final = 8 * KIB
MAX_STEP_PAYLOAD: Final = 64 * KIB
MAX_PAYLOAD_DEPTH: Final = 100  # levels of lists and objects
MAX_SECRET: Final = 1 * KIB
MAX_VIOLATIONS: Final = 1_000  # named in one answer; more than a definition can have steps
DEFAULT_ATTEMPTS: Final = 3
MAX_ATTEMPTS: Final = 20
DEFAULT_ACTION_TIMEOUT: Final = 30 * SECOND
MAX_ACTION_TIMEOUT: Final = 600 * SECOND
MIN_TIMEOUT: Final = 1 * SECOND
DEFAULT_SUBWORKFLOW_TIMEOUT: Final = 24 * HOUR
MAX_SUBWORKFLOW_TIMEOUT: Final = 30 * DAY
DEFAULT_SIGNAL_TIMEOUT: Final = 7 * DAY
MAX_SIGNAL_TIMEOUT: Final = 30 * DAY
MAX_SLEEP: Final = 30 * DAY
MAX_DURATION: Final = 36_500 * DAY  # that is read at all
MAX_DURATION_TEXT: Final = 100  # characters

CHILDREN_AT_ONCE: Final = 8
MAX_DEPTH: Final = 5  # a root run has depth 0

# Retries of declared steps: 2 s, doubling, at most an hour, no jitter
BACKOFF_INITIAL: Final = 2 * SECOND
BACKOFF_FACTOR: Final = 2
BACKOFF_CAP: Final = 1 * HOUR
MAX_ALONE_LOSSES: Final = 5  # of workers that were alone with one attempt, in a row
SUSPECT_LOST_LEASES: Final = 3  # without progress, from which on each attempt runs alone
HOSTS_LOST: Final = 5  # more, from which on an attempt that runs alone waits before its next try
HOSTS_LOST_PAUSE: Final = 10 * SECOND  # doubled each time
HOSTS_LOST_CAP: Final = 10 * MINUTE
CHILD_START: Final = (
    10 * SECOND
)  # that the process of an attempt which runs alone may take to start
MAX_RUN_ATTEMPTS: Final = 10_000

# Runs
MAX_INPUT: Final = 256 * KIB
MAX_OUTPUT: Final = 256 * KIB  # as compact JSON
MAX_RAW_OUTPUT: Final = 1 * MIB  # as a function sends it, spaces and escapes included
MAX_ERROR_TEXT: Final = 2_000  # characters
MAX_IDEMPOTENCY_KEY: Final = 200  # characters
MAX_SIGNAL_PAYLOAD: Final = 32 * KIB
MAX_PENDING_SIGNALS: Final = 1_000
MAX_WAIT: Final = 25  # seconds of `?wait=`
MAX_PAGE: Final = 100  # items of a list
MAX_STEPS_IN_DETAIL: Final = 200

# SQL results
MAX_ROWS: Final = 100
MAX_ROWS_BYTES: Final = 32 * KIB

# Signatures
MAX_SKEW: Final = 300  # seconds

# Requests
MAX_BODY: Final = 5 * MIB
MAX_NESTING: Final = 200  # levels of lists and objects
MAX_PATH_PART: Final = 200  # characters of a name, an id or a number: more than any has
MAX_PAGE_BYTES: Final = 2 * MIB  # of a list; Lambda answers with at most 6 MB, JSON in JSON

# Resources
DEFAULT_VISIBILITY: Final = 30  # seconds
MAX_VISIBILITY: Final = 43_200  # seconds
DEFAULT_RECEIVES: Final = 5
MAX_RECEIVES: Final = 1_000
MAX_MESSAGE: Final = 256 * KIB
MAX_RECEIVED: Final = 10  # messages of one request
MAX_COMMAND: Final = 64  # words

# The lease protocol
LEASE: Final = 60 * SECOND
CLOCK_MARGIN: Final = 2 * SECOND  # clocks of two workers differ by less
MAX_HINT_DELAY: Final = 900 * SECOND  # SQS delays no longer
TICK: Final = 60 * SECOND  # at most, from one tick to the next, where none is late
CLAIM_WAIT: Final = 2 * SECOND  # a run ready this soon is waited for in process

# How a run is stored
DUE_SHARDS: Final = 16  # of DynamoDB's index of what is due, where nothing else is set
MAX_DUE_SHARDS: Final = 256

FORMAT: Final = 1  # of versions, queues and whatever else is not a run
RUN_FORMAT: Final = 2  # the newest of runs that this version reads and writes
BASE_RUN_FORMAT: Final = 1  # of a new run; a write raises it to what it introduces
# A head of at most 1 KiB costs one write unit: some 250 bytes of it are names, keys and times.
COMPRESS_ABOVE: Final = 500
PAGE_ABOVE: Final = 700  # journal as stored
PAGES_OF_INDEX: Final = 8  # page references of one level, which then move to an index page
OPEN_ERRORS: Final = 16 * KIB  # of what backs off, together, once a journal takes more than that
HISTORY_ATTEMPTS: Final = 8  # of a step, the newest
HISTORY_ERRORS: Final = 320  # of these, together
INLINE_OUTPUT: Final = 300
INLINE_INPUT: Final = 120
INLINE_MESSAGE: Final = 200
INLINE_MESSAGES: Final = 4  # in a head; more signals stand beside it
MAX_WAL: Final = 64 * MIB  # of SQLite's log, above which it is emptied
