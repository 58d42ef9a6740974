"""The routes of workflows, with their requests and answers."""
