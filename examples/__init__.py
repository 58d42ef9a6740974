"""Programs that use Stepwell as anyone would: over its API."""
