"""Routes of resources: queues, functions, the database."""

from typing import Final

from stepwell_engine.api.models import Page
from stepwell_engine.api.replies import Reply
from stepwell_engine.api.resources import views
from stepwell_engine.api.resources.models import PutDatabase, PutFunction, PutQueue
from stepwell_engine.api.routing import Routes
from stepwell_engine.api.services import Services
from stepwell_engine.errors import Problem
from stepwell_engine.service.projects.identity import Permission
from stepwell_engine.service.projects.resources import DATABASE, FUNCTION, QUEUE

ROUTES: Final = Routes("resources", "/v1/projects/<ref>")


@ROUTES.add("GET", "/queues", Permission.VIEW, {200: views.QueueList})
def list_queues(services: Services, ref: str, query: Page) -> Reply:
    """List the queues of a project, by name."""
    return _list(services, ref, QUEUE, query)


@ROUTES.add(
    "PUT", "/queues/<name>", Permission.ADMINISTER, {201: views.QueueView}, body_required=False
)
def put_queue(services: Services, ref: str, name: str, body: PutQueue) -> Reply:
    """Create a queue, or change its settings; its messages stay."""
    queue = services.resources.put_queue(ref, name, body.visibility_timeout, body.max_receives)
    return Reply(201, views.resource_view(queue))


@ROUTES.add("GET", "/queues/<name>", Permission.VIEW, {200: views.QueueView})
def get_queue(services: Services, ref: str, name: str) -> Reply:
    """Show a queue."""
    return Reply(200, views.resource_view(services.resources.get(ref, QUEUE, name)))


@ROUTES.add("DELETE", "/queues/<name>", Permission.ADMINISTER, {204: None})
def delete_queue(services: Services, ref: str, name: str) -> Reply:
    """Delete a queue with its messages and its archive."""
    services.resources.delete(ref, QUEUE, name)
    return Reply(204)


@ROUTES.add("GET", "/functions", Permission.VIEW, {200: views.FunctionList})
def list_functions(services: Services, ref: str, query: Page) -> Reply:
    """List the functions of a project, by name."""
    return _list(services, ref, FUNCTION, query)


@ROUTES.add("PUT", "/functions/<name>", Permission.ADMINISTER, {201: views.FunctionView})
def put_function(services: Services, ref: str, name: str, body: PutFunction) -> Reply:
    """Register a function, or move it."""
    target = body.model_dump(exclude_unset=True, by_alias=True)
    function = services.resources.put_function(ref, name, target)
    return Reply(201, views.resource_view(function))


@ROUTES.add("GET", "/functions/<name>", Permission.VIEW, {200: views.FunctionView})
def get_function(services: Services, ref: str, name: str) -> Reply:
    """Show a function."""
    return Reply(200, views.resource_view(services.resources.get(ref, FUNCTION, name)))


@ROUTES.add("DELETE", "/functions/<name>", Permission.ADMINISTER, {204: None})
def delete_function(services: Services, ref: str, name: str) -> Reply:
    """Forget a function."""
    services.resources.delete(ref, FUNCTION, name)
    return Reply(204)


@ROUTES.add(
    "PUT", "/database", Permission.ADMINISTER, {201: views.DatabaseView}, body_required=False
)
def put_database(services: Services, ref: str, body: PutDatabase) -> Reply:
    """Set the database of a project: a DSN, which is kept sealed, an Aurora cluster by its RDS
    Data API, or the embedded one.
    """
    cluster = body.model_dump(include={"cluster", "secret", "database"}, exclude_none=True)
    others = (body.dsn is not None) + bool(cluster)
    if others > 1 or (body.embedded is not None and body.embedded == bool(others)):
        raise Problem(
            "invalid_request",
            'send either a "dsn" or "embedded": true or "cluster" with "secret", one of them',
        )
    database = services.resources.put_database(ref, body.dsn, cluster or None)
    return Reply(201, views.database_view(database))


@ROUTES.add("GET", "/database", Permission.VIEW, {200: views.DatabaseView})
def get_database(services: Services, ref: str) -> Reply:
    """Show the database of a project, without its DSN."""
    return Reply(200, views.database_view(services.resources.get(ref, DATABASE, DATABASE)))


@ROUTES.add("DELETE", "/database", Permission.ADMINISTER, {204: None})
def delete_database(services: Services, ref: str) -> Reply:
    """Forget the database of a project; its data is not touched."""
    services.resources.delete(ref, DATABASE, DATABASE)
    return Reply(204)


def _list(services: Services, ref: str, kind: str, query: Page) -> Reply:
    found, cursor = services.resources.list(ref, kind, query.cursor, query.limit)
    items = [views.resource_view(one) for one in found]
    return Reply(200, {"items": items, "next_cursor": cursor})
