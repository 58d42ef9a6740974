"""`python -m examples.order_pipeline`: see the order pipeline survive kill -9."""

import sys

from examples.order_pipeline.demo import main

sys.exit(main(sys.argv[1:]))
