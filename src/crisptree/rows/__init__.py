"""Where training rows come from: arrays, windows of images, or sparse rows. ``base`` is the contract."""
