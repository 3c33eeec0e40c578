"""The training pipeline without scikit-learn classes: plain parameters and checked rows in, fitted trees out."""
