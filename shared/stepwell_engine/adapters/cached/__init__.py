"""What every step and request asks for, remembered over another adapter."""
