"""Text and images for training: from files to sentences, ids and features, to stores on disk, and to batches."""
