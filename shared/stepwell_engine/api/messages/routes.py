"""Routes of the messages in queues."""

from typing import Final

from stepwell_engine.api.messages import views
from stepwell_engine.api.messages.models import MessagePage, ReceiveMessages, SendMessage
from stepwell_engine.api.replies import Reply
from stepwell_engine.api.routing import Routes
from stepwell_engine.api.services import Services
from stepwell_engine.core.values import jsonvalue
from stepwell_engine.service.projects.identity import Permission

ROUTES: Final = Routes("messages", "/v1/projects/<ref>/queues/<name>/messages")


@ROUTES.add("GET", "", Permission.VIEW, {200: views.MessageList}, ("not_supported",))
def list_messages(services: Services, ref: str, name: str, query: MessagePage) -> Reply:
    """List the messages of a queue, or of its archive, without receiving them.

    Queues on SQS cannot do that: the answer is then a 409.
    """
    found, cursor = services.messages.list(ref, name, query.cursor, query.limit, query.archived)
    items = [views.message_view(one) for one in found]
    return Reply(200, {"items": items, "next_cursor": cursor})


@ROUTES.add("POST", "", Permission.RUN, {201: views.SentView})
def send_message(services: Services, ref: str, name: str, body: SendMessage) -> Reply:
    """Send a message to a queue."""
    return Reply(201, {"id": services.messages.send(ref, name, jsonvalue.encode(body.body))})


@ROUTES.add("POST", "/receive", Permission.RUN, {200: views.ReceivedView}, body_required=False)
def receive_messages(services: Services, ref: str, name: str, body: ReceiveMessages) -> Reply:
    """Receive messages, oldest first: they are hidden for the queue's visibility timeout."""
    taken = services.messages.receive(ref, name, body.max)
    return Reply(200, {"items": [views.message_view(one) for one in taken]})


@ROUTES.add("DELETE", "/<receipt>", Permission.RUN, {204: None})
def delete_message(services: Services, ref: str, name: str, receipt: str) -> Reply:
    """Delete a received message by its newest receipt."""
    services.messages.delete(ref, name, receipt)
    return Reply(204)
