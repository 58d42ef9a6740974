"""The AWS Lambda functions: one folder with a handler for each."""
