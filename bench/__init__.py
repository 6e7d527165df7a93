"""The benchmark: what a session costs, on boards of different sizes, and how good its proposals are.

``python -m bench --help`` tells how to run it; ``bench/reports/latest.json`` is the last full report.
"""
