"""Outgoing HTTP: the egress guard, signing, webhooks and function URLs."""
