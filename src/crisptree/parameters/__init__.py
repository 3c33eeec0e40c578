"""Parameters of the estimators: declarations, rules and documentation. Only NumPy is imported here."""
