"""What AWS asks, in US dollars: eu-west-1 and us-east-1, as of 2026-11."""

from typing import Final

AS_OF: Final = "2026-11"
WRITE_UNIT: Final = 0.625e-6  # DynamoDB on demand
READ_UNIT: Final = 0.125e-6
SQS_REQUEST: Final = 0.40e-6  # standard queue
LAMBDA_INVOCATION: Final = 0.20e-6
LAMBDA_GB_SECOND: Final = 0.0000133334  # arm64
API_REQUEST: Final = 1.00e-6  # HTTP API
