"""Model files, checkpoints, and the conversion of trees to sections of a file and back."""
