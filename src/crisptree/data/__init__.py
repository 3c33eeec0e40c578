"""Sources of rows: arrays, sparse rows and windows of images, and their scaling."""
