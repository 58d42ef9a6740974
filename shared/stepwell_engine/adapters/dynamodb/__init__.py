"""The stores on DynamoDB."""
