"""The Stepwell engine: one durable workflow engine for AWS and for a single machine."""
