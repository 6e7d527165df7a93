"""The benchmark of the served form on local servers: what a call asks of which store, and what that costs.

``python -m bench.served --help`` tells how to run it; ``bench/reports/served.json`` is the last full report.
"""
