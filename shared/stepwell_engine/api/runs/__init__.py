"""The routes of runs, with their requests and answers."""
