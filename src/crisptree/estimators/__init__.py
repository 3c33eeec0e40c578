"""The scikit-learn interface. No mathematics."""
