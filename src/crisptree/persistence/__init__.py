"""Files: the model file, the trees in it, and the one way in which any file is written.

Reading goes downwards: ``model_file`` turns bytes into sections and arrays, ``arrays`` holds those to what the
dataclasses say of themselves, ``trees`` makes trees of them and asks ``modules``, which needs torch, only where splits
are modules. ``limits`` says how much a file may ask for, ``writing`` puts files in their place whole or not at all.
"""
