"""Engines that take the steps of an epoch; ``torch_engine`` is the definition and supports all.

Each engine has a method ``supports``; ``loop.select_engine`` takes the first that supports a training, and
``tests/learning/test_engines.py`` runs all of them against the definition on one grid of cases.
"""
