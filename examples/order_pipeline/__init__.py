"""An order is charged, provisioned and announced, although the engine is killed in between."""
