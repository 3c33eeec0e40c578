"""Model files, checkpoints and atomic writing.

``model_file`` converts bytes to sections of JSON and arrays, ``document`` does so for the JSON export, ``trees`` builds
trees from sections and asks ``modules``, which needs torch, only for split modules. ``crisptree.limits`` bounds what a
file may ask for; ``writing`` replaces files atomically.
"""
