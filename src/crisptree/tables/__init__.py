"""Tables to rows of numbers: readers that go through a file in pieces, and a preprocessing that a model file keeps.

``preprocessing`` is NumPy only and travels with the model; everything that touches a file needs pyarrow.
"""
