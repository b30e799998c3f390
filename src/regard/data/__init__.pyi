from .batches import BatchLoader as BatchLoader
from .batches import CostBatches as CostBatches
from .captions import read_captions as read_captions
from .corpus import Corpus as Corpus
from .documents import Document as Document
from .documents import read_documents as read_documents
from .features import FeatureStore as FeatureStore
from .images import Images as Images
from .images import Square as Square
from .images import Whole as Whole
from .images import open_image as open_image
from .splits import Splits as Splits
from .text import (
    read_dataset as read_dataset,
)
from .text import (
    read_lines as read_lines,
)
from .text import (
    read_pairs as read_pairs,
)
from .text import (
    read_tsv as read_tsv,
)
from .text import (
    split_sentences as split_sentences,
)
from .tokenizer import Tokenizer as Tokenizer
from .vocabulary import Vocabulary as Vocabulary
from .word_vectors import read_vectors as read_vectors
