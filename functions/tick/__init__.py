"""The function that sends hints for what is due, every minute."""
