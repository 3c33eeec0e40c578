"""Tables to rows of numbers: columns of DataFrames and files, and a preprocessing that a model file keeps.

``preprocessing`` is NumPy only and travels with the model; only what reads or writes files needs pyarrow.
"""
