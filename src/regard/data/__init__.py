"""Text for training: files to sentences, sentences to ids, ids to a store on disk, and from there to batches."""
