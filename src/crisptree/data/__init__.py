"""Where rows come from: arrays, sparse rows and windows of images, and how they are scaled."""
