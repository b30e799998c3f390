"""Public data sets by name: their files, licences, and how to train on them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath

from regard.data.public import flickr8k, hansards

MEGABYTE = 10**6


@dataclass(frozen=True)
class File:
    """One file of a data set."""

    name: str
    max_bytes: int
    """A larger file is refused."""
    url: str | None = None
    """Where to download it; None if it must be fetched by hand."""
    sha256: str | None = None
    """Checksum; None if the publisher replaces the file from time to time, so that it cannot be pinned."""
    member: str | None = None
    """For a zip or tar archive: a pattern that at least one of its members must match."""


@dataclass(frozen=True)
class Dataset:
    """A public data set: its files, what they may be used for, whom to cite, and how to read and train on them."""

    name: str
    description: str
    """One line about what the data set holds."""
    files: tuple[File, ...]
    size: str
    """Total size of the files, for people."""
    licence: str
    citation: str
    reading: str
    """Python expression that reads the data, with `folder` for the folder that `get` returned."""
    training: str
    """Shell command that trains on the data, with FOLDER for that folder."""
    recipes: tuple[str, ...]
    """Recipes that need this data set."""
    page: str = ""
    """Official page of a data set that must be fetched by hand."""
    by_hand: str = ""
    """Why it must be fetched by hand; empty if it can be downloaded."""
    derived: tuple[str, ...] = ()
    """Files that `prepare`, or the command in `training`, writes."""
    prepare: Callable[[Path], None] | None = None
    """Convert the files in a folder to what the recipes read."""
    pinned: str = "Verified by SHA-256."
    """How the files are verified."""


_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
_MULTI30K_SHA256 = {
    "test_2016_flickr.cs.gz": "200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    "train.cs.gz": "a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.cs.gz": "b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
}
_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist"
_MNIST_SHA256 = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}


def _tatoeba(language: str, code: str, recipe: str) -> Dataset:
    return Dataset(
        name=f"tatoeba-{code}",
        description=f"English-{language} everyday sentences of the Tatoeba project, selected by manythings.org",
        files=(
            File(
                f"{code}-eng.zip",
                max_bytes=100 * MEGABYTE,
                url=f"https://www.manythings.org/anki/{code}-eng.zip",
                member=f"{code}.txt",
            ),
        ),
        size="3 to 15 MB",
        licence="CC BY 2.0 France; attribution: www.manythings.org/anki and tatoeba.org",
        citation=f"English-{language} sentence pairs of the Tatoeba project, selected by manythings.org/anki",
        reading=f'text.read_tsv(folder / "{code}-eng.zip/{code}.txt")',
        training=f"regard train {recipe} --data.folder FOLDER",
        recipes=(recipe,),
        pinned=(
            "Not pinned: the publisher replaces the file about every week, so it has no checksum and results vary "
            f"slightly. Verified to be a zip archive with {code}.txt."
        ),
    )


_FLICKR8K_RECIPES = ("flickr8k-soft", "flickr8k-hard", "flickr8k-show-and-tell")
_MULTI30K_RECIPES = ("multi30k-transformer", "multi30k-luong", "multi30k-rnnsearch", "multi30k-plain")

_ALL = (
    Dataset(
        name="cifar10",
        description="60,000 colour images of 32 x 32 pixels in 10 classes",
        files=(
            File(
                "cifar-10-binary.tar.gz",
                max_bytes=200 * MEGABYTE,
                url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
        ),
        size="170 MB",
        licence="None stated; images from the web, for research",
        citation="Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images",
        reading="labelled_images.read_cifar10(folder)",
        training="regard train cifar-vgg --data.folder FOLDER",
        recipes=("cifar-vgg", "cifar-convnetjs"),
    ),
    Dataset(
        name="flickr8k",
        description="8,000 photographs with five English captions each",
        files=(
            File("Flickr8k_Dataset.zip", max_bytes=2000 * MEGABYTE, member="*.jpg"),
            File("Flickr8k_text.zip", max_bytes=10 * MEGABYTE, member="*Flickr8k.token.txt"),
        ),
        size="1.1 GB",
        licence="Non-commercial research and education; the photographs belong to their authors on Flickr",
        citation="Hodosh, Young and Hockenmaier 2013, Framing Image Description as a Ranking Task",
        reading='captions.read_captions(folder / "captions.tsv.gz"), images.Images(folder / "Flickr8k_Dataset.zip")',
        training="regard train flickr8k-soft --data.folder FOLDER --data.images Flickr8k_Dataset.zip",
        recipes=_FLICKR8K_RECIPES,
        page="https://forms.illinois.edu/sec/1713398",
        by_hand="its authors ask everyone to fill in a form",
        derived=(flickr8k.CAPTIONS,),
        prepare=flickr8k.write_captions,
        pinned="Verified to be zip archives with the photographs and with Flickr8k.token.txt.",
    ),
    Dataset(
        name="hansards",
        description="1.1 million English-French sentence pairs of the 36th Parliament of Canada",
        files=(File(hansards.ARCHIVE, max_bytes=500 * MEGABYTE, member="*.e.gz"),),
        size="about 85 MB",
        licence="Free of charge, without restrictions that would hamper research (ISI)",
        citation="Germann 2001, Aligned Hansards of the 36th Parliament of Canada, release 2001-1a",
        reading=f'text.read_tsv(folder / "{hansards.PAIRS}")',
        training=f"regard train hansards-en-fr --data.folder FOLDER --data.pairs {hansards.PAIRS}",
        recipes=("hansards-en-fr",),
        page="https://www.isi.edu/natural-language/download/hansard/",
        by_hand="its host changes and has no fixed checksum",
        derived=(hansards.PAIRS,),
        prepare=hansards.write_pairs,
        pinned="Verified to be a tar archive of English and French files.",
    ),
    Dataset(
        name="mnist",
        description="70,000 grey images of handwritten digits, 28 x 28 pixels",
        files=tuple(
            File(name, max_bytes=20 * MEGABYTE, url=f"{_MNIST}/{name}", sha256=sha256)
            for name, sha256 in _MNIST_SHA256.items()
        ),
        size="12 MB",
        licence="Commonly given as CC BY-SA 3.0",
        citation="LeCun, Bottou, Bengio and Haffner 1998, Gradient-Based Learning Applied to Document Recognition",
        reading="labelled_images.read_mnist(folder)",
        training="regard train mnist-lenet --data.folder FOLDER",
        recipes=("mnist-lenet",),
    ),
    Dataset(
        name="multi30k",
        description="31,000 image descriptions in English, German, French and Czech",
        files=tuple(
            File(name, max_bytes=5 * MEGABYTE, url=f"{_MULTI30K}/{name}", sha256=sha256)
            for name, sha256 in _MULTI30K_SHA256.items()
        ),
        size="3 MB",
        licence="The repository states none; image captions for research. Ask the authors before other use",
        citation="Elliott et al. 2016, Multi30K: Multilingual English-German Image Descriptions; "
        "French: Elliott et al. 2017; Czech: Barrault et al. 2018",
        reading='text.read_pairs(folder / "train.en.gz", folder / "train.fr.gz")',
        training="regard train multi30k-transformer --data.folder FOLDER",
        recipes=_MULTI30K_RECIPES,
    ),
    Dataset(
        name="newsgroups",
        description="18,846 posts of 20 newsgroups, to predict their subject lines",
        files=(
            File(
                "20news-bydate.tar.gz",
                max_bytes=50 * MEGABYTE,
                url="https://ndownloader.figshare.com/files/5975967",
                sha256="8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
            ),
        ),
        size="14 MB",
        licence="None stated; public posts from 1993",
        citation="Lang 1995, NewsWeeder: Learning to Filter Netnews; the version by date of "
        "qwone.com/~jason/20Newsgroups",
        reading="newsgroups.prepare(folder, folder)",
        training="regard data newsgroups --from FOLDER --out NEWS; regard train newsgroups-subject --data.folder NEWS",
        recipes=("newsgroups-subject",),
        derived=tuple(f"{part}.{side}" for part in ("train", "valid", "test") for side in ("body", "subject")),
    ),
    _tatoeba("German", "deu", "tatoeba-en-de"),
    _tatoeba("French", "fra", "tatoeba-en-fr"),
)
DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _ALL}


def list_datasets() -> list[Dataset]:
    """Return all data sets that `regard data get` knows, sorted by name."""
    return [DATASETS[name] for name in sorted(DATASETS)]


def hint_for(name: str | PurePath) -> str:
    """Return how to get the data set that a missing file, a recipe or a data set name belongs to; empty if unknown."""
    parts = {str(name), *PurePath(name).parts}
    for dataset in list_datasets():
        files = {file.name for file in dataset.files} | set(dataset.derived)
        if parts & (files | {dataset.name, *dataset.recipes}):
            return (
                f"This is part of the data set {dataset.name}: run `regard data get {dataset.name} --out FOLDER` and "
                f"train with `{dataset.training}`."
            )
    return ""
