"""Hints and queues on SQS."""
