"""How fast batches of a parallel corpus are made, with and without BPE dropout: target tokens per CPU second.

    python benchmarks/feeding.py --source train.en --target train.de

One process, one thread, the time of the CPU, padding and batching included. The first epoch meets each word for the
first time; later ones look up how it may be split.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from regard.data import Corpus, CostBatches, Tokenizer, read_lines
from regard.data.pairs import CorpusPairs, collate, padded_sizes


def main() -> None:
    """Print a row for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, help="source sentences, one per line")
    parser.add_argument("--target", type=Path, required=True, help="their translations, line by line")
    parser.add_argument("--vocabulary", type=int, default=8000, help="size of the joint vocabulary")
    parser.add_argument("--max-tokens", type=int, default=4096, help="tokens of a batch")
    parser.add_argument("--epochs", type=int, default=4, help="epochs to measure")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pairs = list(zip(read_lines(options.source), read_lines(options.target), strict=True))
    tokenizer = Tokenizer.train([line for pair in pairs for line in pair], size=options.vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus.build(pairs, tokenizer, tokenizer, folder, progress=False)
        print("| BPE dropout | epoch | target tokens per CPU second |\n|---|---|---|")
        for dropout in (0.0, 0.1):
            examples = CorpusPairs(corpus, tokenizer, tokenizer, dropout=dropout, seed=1)
            batches = CostBatches(
                padded_sizes(examples.lengths), max_cost=options.max_tokens, shuffle=True, seed=1, with_epoch=True
            )
            for epoch in range(options.epochs):
                batches.set_epoch(epoch)
                tokens, began = 0, time.process_time()
                for indices in batches:
                    batch = collate(examples.__getitems__(indices))
                    tokens += int(np.sum(batch.target_lengths.numpy() - 1))
                print(f"| {dropout} | {epoch + 1} | {tokens / (time.process_time() - began):,.0f} |")


if __name__ == "__main__":
    main()
