"""Model selection inside a fit: candidates as data, folds, scoring and comparison, for trees and forests alike."""
