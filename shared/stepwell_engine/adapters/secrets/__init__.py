"""Secrets, sealed by KMS or by a key in the data folder."""
