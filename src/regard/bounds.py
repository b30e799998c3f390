"""The largest numbers that anybody may give, by the names of fields and arguments: one table for every door.

Configs, options of commands, arguments of functions and requests to a server are held to it. A number without a row
has the bounds `INTEGER` or `NUMBER`.
"""

from typing import Any

INTEGER, NUMBER = 10**9, 1e12
"""The largest whole number, and the largest other number, of a field without a row."""
BOUNDS: dict[str, tuple[int, int | None]] = {
    # search
    "beam": (1000, 16), "nbest": (1000, 16), "max_length": (100_000, 500), "min_length": (100_000, 500),
    "top_k": (10_000_000, 100_000), "top": (1_000_000, 1000), "block_ngrams": (100_000, 100),
    "valid_beam": (1000, None), "max_output_length": (100_000, None), "seed": (2**63 - 1, 2**63 - 1),
    # what a model is asked for
    "num_glimpses": (1000, 32), "passes": (1000, 32), "slots": (65_536, 4096), "repeats": (10_000, 64),
    "query": (10_000, 1000), "length": (100_000, 1000), "per_length": (1_000_000, 16), "words": (1000, 10),
    "max_maps": (1024, 32), "channels": (65_536, 1024), "height": (65_536, 1024), "width": (65_536, 1024),
    "sentence": (10_000_000, 10_000), "read_ahead": (1_000_000, None), "max_megapixels": (10_000, None),
    # data
    "examples": (100_000_000, None), "held_out": (10_000_000, None), "held_out_test": (10_000_000, None),
    "count": (100_000_000, None), "test_examples": (100_000_000, None), "valid_tapes": (10_000_000, None),
    "faithfulness": (1_000_000, None), "shuffles": (1_000_000, None), "vocabulary": (10_000_000, None),
    "max_words": (1_000_000, None), "max_sentence_words": (100_000, None), "max_sentences": (1_000_000, None),
    "bits": (4096, None), "item_length": (10_000, None), "max_repeats": (10_000, None), "context": (20, None),
    "image_size": (8192, None), "pieces": (10_000, None), "piece_size": (8192, None), "crop": (8192, None),
    "cutout": (8192, None), "regions_side": (8192, None), "show": (10_000, None), "limit": (10_000_000, None),
    "each": (100_000, None), "rounds": (1000, None), "chunk_size": (1_000_000, None), "line": (10**12, None),
    # models
    "layers": (1000, None), "decoder_layers": (1000, None), "heads": (4096, None), "num_heads": (4096, None),
    "num_key_heads": (4096, None), "window": (1_000_000, None), "max_positions": (1_000_000, None),
    "read_heads": (256, None), "write_heads": (256, None), "max_shift": (1024, None), "stride": (1024, None),
    "coarse_stride": (1024, None), "glimpse_size": (4096, None), "num_scales": (12, None), "views": (64, None),
    **dict.fromkeys(
        ("embedding", "hidden", "encoder_hidden", "feedforward_dim", "attention_dim", "classifier_dim", "glimpse_dim",
         "locator_dim", "feature_dim", "pca_dim", "annotation_dim", "filters", "dim", "dims", "query_dim", "key_dim",
         "kdim", "vdim", "num_queries"),
        (1_048_576, None),
    ),
    # training
    "epochs": (1_000_000, None), "accumulate": (100_000, None), "batch_size": (1_000_000, None),
    "epoch_updates": (100_000_000, None), "keep_checkpoints": (10_000, None), "devices": (1024, None),
    "nodes": (10_000, None), "workers": (1024, None), "attention_samples": (1000, None), "num_samples": (1000, None),
    # servers
    "memory": (2**30, None), "queue": (1_000_000, None), "per_client": (1_000_000, None), "batch": (10_000, None),
    "max_body": (10_000, None), "max_inputs": (1_000_000, None), "max_characters": (100_000_000, None),
    "deadline": (1_000_000, None),
    # drawing
    "dpi": (2400, None), "font_size": (1000, None), "seconds": (3600, None), "side": (8192, None),
    "columns": (1000, None), "layer": (10_000, None), "head": (10_000, None),
}  # fmt: skip
"""By the name of a field, its largest number anywhere, and the largest in a request, so that no request monopolises a
server; None where the second is the first, or where requests have no such field."""


LONGEST = {"title": 1000, "prefix": 2000, "name": 1000, "style": 100, "device": 100}
"""By the name of a field, the most characters of its text."""


def wrong_text(name: str, value: Any) -> str:
    """What is wrong with a text: it is too long, or cannot be written down; "" if nothing is."""
    most = LONGEST.get(name)
    if most is None or not isinstance(value, str):
        return ""
    if len(value) > most:
        return f"must have at most {most:,} characters; got {len(value):,}"
    try:
        value.encode()
    except UnicodeEncodeError:
        return f"must be text of whole characters; got {value!r:.80}"
    return ""


def too_large(name: str, value: Any) -> int | float | None:
    """The bound that a number, or one of a list of numbers, exceeds in size; None where all of them keep to it."""
    for part in value if isinstance(value, tuple | list) else (value,):
        if isinstance(part, bool) or not isinstance(part, int | float):
            continue
        largest: int | float = BOUNDS[name][0] if name in BOUNDS else INTEGER if isinstance(part, int) else NUMBER
        if abs(part) > largest:
            return largest
    return None
