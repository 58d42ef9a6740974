"""The routes of the messages of queues, with their requests and answers."""
