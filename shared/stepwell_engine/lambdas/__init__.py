"""What the handlers of the functions share: records of the hints queue, logs and metrics."""
