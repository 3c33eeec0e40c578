"""Where training rows come from: arrays, or windows of images. ``base`` is the contract."""
