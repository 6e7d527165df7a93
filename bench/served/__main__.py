"""``python -m bench.served``."""

from __future__ import annotations

import sys

from bench.served.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
