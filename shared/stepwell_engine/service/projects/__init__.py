"""What a project consists of: identity, definitions, resources, messages in its queues."""
