"""Measurements of the embedded home and of the work on DynamoDB."""
