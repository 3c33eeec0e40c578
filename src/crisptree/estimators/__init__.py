"""The scikit-learn coat: it stores, checks and orders the steps. No mathematics in here."""
