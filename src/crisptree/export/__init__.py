"""A trained tree in other forms: the model file."""
