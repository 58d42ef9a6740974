"""What each partition key of DynamoDB takes per second, from metered calls of the engine."""
