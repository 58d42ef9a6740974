"""The DynamoDB tables: every key, index and attribute has its name here, and nowhere else.

Names are one letter in storage: DynamoDB bills an item by its size, names included. The names of
the tables themselves are an installation's own; `table_name` here is only what a table is for.
"""

from typing import Any, Final

from pynamodb.attributes import (
    BinaryAttribute,
    BooleanAttribute,
    ListAttribute,
    UnicodeAttribute,
)
from pynamodb.indexes import GlobalSecondaryIndex, IncludeProjection, KeysOnlyProjection
from pynamodb.models import Model

from stepwell_engine.adapters.dynamodb.attributes import (
    InboxAttribute,
    IntegerAttribute,
    RunIdAttribute,
    StatusAttribute,
)

HEAD: Final = "h"  # the sort key of a head; no blob is called so
KEY: Final = "k"  # the sort key of an idempotency key
DELIVERY: Final = "s#"  # before the key of a delivery, in its sort key
LANE_FORMAT: Final = 2  # of runs that stand in lanes: older versions know none
SLOT: Final = "i#"  # before the number of a slot of an inbox's overflow, in its sort key
EXPIRES: Final = "t"  # the attribute of all tables that holds a TTL, in seconds, and nothing else


class RunsOfWorkflow(GlobalSecondaryIndex[Any]):  # type: ignore[no-untyped-call]  # PynamoDB's
    """The runs of a workflow, by id (see run_list). Written once, when a run is created."""

    class Meta:
        """Keys only: a list reads the heads themselves."""

        index_name = "runs-of-workflow"
        projection = KeysOnlyProjection()

    owner = UnicodeAttribute(hash_key=True, attr_name="g")
    run_id = RunIdAttribute(range_key=True, attr_name="r")


class DueRuns(GlobalSecondaryIndex[Any]):  # type: ignore[no-untyped-call]  # PynamoDB's
    """What the tick must look at, by time. Only heads with a `wake_at` are in it."""

    class Meta:
        """What a hint needs, and what tells a newer format."""

        index_name = "due-runs"
        projection = IncludeProjection(["g", "f"])

    shard = IntegerAttribute(hash_key=True, attr_name="d")
    wake_at = IntegerAttribute(range_key=True, attr_name="w")


class HeadItem(Model):
    """The head of a run. What is 0, empty or false by default is left out."""

    class Meta:
        """The table of runs: heads, blobs, idempotency keys of starts and of deliveries."""

        table_name = "runs"

    run_id = RunIdAttribute(hash_key=True, attr_name="r")
    kind = UnicodeAttribute(range_key=True, attr_name="k", default=HEAD)
    # project#workflow, or project#workflow#lane; no name contains a #
    owner = UnicodeAttribute(attr_name="g")
    shard = IntegerAttribute(attr_name="d")
    wake_at = IntegerAttribute(attr_name="w", null=True)
    version = IntegerAttribute(attr_name="v")
    created_at = IntegerAttribute(attr_name="c")
    status = StatusAttribute(attr_name="s")
    ended_at = IntegerAttribute(attr_name="e", null=True)
    ready_at = IntegerAttribute(attr_name="a")
    token = UnicodeAttribute(attr_name="l", null=True)
    until = IntegerAttribute(attr_name="u", null=True)
    claimed_at = IntegerAttribute(attr_name="ca", null=True)
    # Of a lease that an older version took: when, in ms; nothing expires at such a time.
    expires = IntegerAttribute(attr_name=EXPIRES, null=True)
    revision = IntegerAttribute(attr_name="n")
    commit = IntegerAttribute(attr_name="o")
    lost = IntegerAttribute(attr_name="x", null=True)
    alone = IntegerAttribute(attr_name="ao", null=True)  # 1, or not there
    alone_losses = IntegerAttribute(attr_name="al", null=True)
    journal = BinaryAttribute(attr_name="j", legacy_encoding=False, null=True)
    inbox = InboxAttribute(attr_name="m")  # always there, so that a message can be put into it
    input = BinaryAttribute(attr_name="i", legacy_encoding=False, null=True)
    idempotency_key = UnicodeAttribute(attr_name="y", null=True)
    test = BooleanAttribute(attr_name="q", null=True)
    parent = RunIdAttribute(attr_name="p", null=True)
    depth = IntegerAttribute(attr_name="h", null=True)
    notify_pending = BooleanAttribute(attr_name="z", null=True)
    cascade = BooleanAttribute(attr_name="b", null=True)
    format = IntegerAttribute(attr_name="f")
    overflow_last = IntegerAttribute(attr_name="ol", null=True)
    overflow_count = IntegerAttribute(attr_name="oc", null=True)
    wants = UnicodeAttribute(attr_name="wn", null=True)
    wants_seq = IntegerAttribute(attr_name="wc", null=True)
    deadline = IntegerAttribute(attr_name="dl", null=True)
    generation = IntegerAttribute(attr_name="gn", null=True)  # from 1 on
    told = BooleanAttribute(attr_name="td", null=True)

    runs_of_workflow = RunsOfWorkflow()
    due_runs = DueRuns()


class ListMark(Model):
    """For a busy moment of a workflow: some of its runs are in lanes (see run_list).

    Its id is the highest of that moment. A version that knows no lanes leaves it out, by its
    format.
    """

    class Meta:
        """In partitions of their own."""

        table_name = "runs"

    run_id = RunIdAttribute(hash_key=True, attr_name="r")
    kind = UnicodeAttribute(range_key=True, attr_name="k")
    owner = UnicodeAttribute(attr_name="g")
    format = IntegerAttribute(attr_name="f", default=LANE_FORMAT)


class BlobItem(Model):
    """A blob of a run, or a chunk of a large one. Its sort key is the blob's name."""

    class Meta:
        """Beside the head of its run."""

        table_name = "runs"

    run_id = RunIdAttribute(hash_key=True, attr_name="r")
    name = UnicodeAttribute(range_key=True, attr_name="k")
    data = BinaryAttribute(attr_name="b", legacy_encoding=False)
    chunks = IntegerAttribute(attr_name="z", null=True)  # of the first one, if there are more


class KeyItem(Model):
    """An idempotency key, and the run that it stands for."""

    class Meta:
        """In a partition of its own: project#workflow#key."""

        table_name = "runs"

    key = BinaryAttribute(hash_key=True, attr_name="r", legacy_encoding=False)
    kind = UnicodeAttribute(range_key=True, attr_name="k", default=KEY)
    holder = RunIdAttribute(attr_name="h")


class SlotItem(Model):
    """A slot of an inbox's overflow; its message is stored as those in a head are."""

    class Meta:
        """Beside the head of its run."""

        table_name = "runs"

    run_id = RunIdAttribute(hash_key=True, attr_name="r")
    name = UnicodeAttribute(range_key=True, attr_name="k")
    id = UnicodeAttribute(attr_name="i")
    message = ListAttribute[Any](attr_name="m", null=True)
    key = UnicodeAttribute(attr_name="y", null=True)
    void = BooleanAttribute(attr_name="v", null=True)
    generation = IntegerAttribute(attr_name="gn", null=True)  # from 1 on


class DeliveryItem(Model):
    """The idempotency key of a delivery to a run, when the message came, and its slot's number.

    Without a number the message went into the head, and `at` says when. An older version takes
    whatever has that for delivered, so a key with a number, which may not count yet, has `since`.
    """

    class Meta:
        """Beside the head of its run."""

        table_name = "runs"

    run_id = RunIdAttribute(hash_key=True, attr_name="r")
    name = UnicodeAttribute(range_key=True, attr_name="k")
    at = IntegerAttribute(attr_name="c", null=True)
    number = IntegerAttribute(attr_name="n", null=True)
    since = IntegerAttribute(attr_name="a", null=True)


class ControlItem(Model):
    """What the items of the control table have in common."""

    class Meta:
        """Projects, grants, workflows, versions, resources."""

        table_name = "control"

    partition = UnicodeAttribute(hash_key=True, attr_name="p")
    name = UnicodeAttribute(range_key=True, attr_name="k")


class ProjectItem(ControlItem):
    """A project."""

    organization = UnicodeAttribute(attr_name="o")
    created_at = IntegerAttribute(attr_name="c")


class GrantItem(ControlItem):
    """A grant; it vanishes some time after it has expired."""

    kind = UnicodeAttribute(attr_name="g")
    organization = UnicodeAttribute(attr_name="o")
    role = UnicodeAttribute(attr_name="r", null=True)
    project = UnicodeAttribute(attr_name="j", null=True)
    expires_at = IntegerAttribute(attr_name="e", null=True)
    expires = IntegerAttribute(attr_name=EXPIRES, null=True)


class WorkflowItem(ControlItem):
    """What may change about a workflow: one write of it publishes, enables or disables.

    Versions up to `set_up_to` are `enabled` as it says here, later ones as they were published.
    `highest` is the highest enabled version, 0 if there is none.
    """

    newest = IntegerAttribute(attr_name="n")
    highest = IntegerAttribute(attr_name="h")
    set_up_to = IntegerAttribute(attr_name="s", null=True)
    enabled = BooleanAttribute(attr_name="e", null=True)
    format = IntegerAttribute(attr_name="f")


class VersionItem(ControlItem):
    """A version of a workflow, immutable. Its document is plain, or deflated if that is smaller."""

    created_at = IntegerAttribute(attr_name="c")
    enabled = BooleanAttribute(attr_name="e")
    plain = BinaryAttribute(attr_name="d", legacy_encoding=False, null=True)
    deflated = BinaryAttribute(attr_name="z", legacy_encoding=False, null=True)
    format = IntegerAttribute(attr_name="f")


class ResourceItem(ControlItem):
    """A resource of a project."""

    config = BinaryAttribute(attr_name="d", legacy_encoding=False)
    sealed = UnicodeAttribute(attr_name="s", null=True)
    created_at = IntegerAttribute(attr_name="c")


class TickItem(ControlItem):
    """When the last tick began that saw all that was due."""

    began = IntegerAttribute(attr_name="c")


TABLES: Final[tuple[type[Model], ...]] = (HeadItem, ControlItem)


def definition(model: type[Model], table: str) -> dict[str, Any]:
    """The arguments of `create_table` for a model: on demand, with its indexes, named `table`."""
    schema: Any = model._get_schema()  # noqa: SLF001  PynamoDB tells it nowhere else
    indexes = [
        {
            "IndexName": index["index_name"],
            "KeySchema": _hash_first(index["key_schema"]),
            "Projection": index["projection"],
        }
        for index in schema["global_secondary_indexes"]
    ]
    return {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _hash_first(schema["key_schema"]),
        "AttributeDefinitions": schema["attribute_definitions"],
        **({"GlobalSecondaryIndexes": indexes} if indexes else {}),
    }


def _hash_first(keys: list[dict[str, str]]) -> list[dict[str, str]]:
    return sorted(keys, key=lambda key: key["KeyType"])
