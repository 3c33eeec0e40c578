"""What is published: for each data set its files, their sizes and checksums, and how many rows they hold.

Nothing here is guessed. A size or checksum that is not established is None, and users are told so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Checksum:
    """A digest, and whether it was confirmed by more than one listing."""

    algorithm: str
    digest: str
    confirmed: bool = True

    def __str__(self) -> str:
        return f"{self.algorithm} {self.digest}" + ("" if self.confirmed else " (from one listing, not confirmed)")


@dataclass(frozen=True)
class Content:
    """The file inside an archive: for archives whose own checksum is not known."""

    member: str
    size: int
    checksum: Checksum


@dataclass(frozen=True)
class PublishedFile:
    """One file as its publisher gives it."""

    name: str
    url: str
    size: int | None = None
    checksum: Checksum | None = None
    content: Content | None = None

    def __str__(self) -> str:
        size = f"{self.size:,} bytes" if self.size is not None else "size not known"
        checksum = str(self.checksum) if self.checksum else "checksum not known"
        if self.content:
            checksum += f" (but of {self.content.member} inside: {self.content.size:,} bytes, {self.content.checksum})"
        return f"{self.name}: {size}, {checksum}"


Form = tuple[tuple[str, ...], ...]
"""One way in which data lies on disk: for each file that is needed, the names it may have (a folder's end in /)."""


@dataclass(frozen=True)
class Publication:
    """A data set as it was published."""

    name: str
    title: str
    page: str
    files: tuple[PublishedFile, ...] = ()
    forms: Mapping[str, Form] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    class_counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"


def _sha256(digest: str) -> Checksum:
    return Checksum("sha256", digest)


def _idx(
    name: str, base: str, *listing: tuple[int, str], title: str, page: str, **more: Mapping[str, tuple[int, ...]]
) -> Publication:
    """Four files, whose sizes and SHA-256 are listed, or our own .npz."""
    files = [
        PublishedFile(f"{file}.gz", f"{base}/{file}.gz", size, _sha256(digest))
        for file, (size, digest) in zip(IDX, listing, strict=True)
    ]
    forms = {"npz": ((f"{name}.npz",),), "idx": tuple((f"{file}.gz", file) for file in IDX)}
    return Publication(name, title, page, tuple(files), forms, {"train": 60_000, "test": 10_000}, **more)


def _libsvm(
    name: str, base: str, listing: Mapping[str, str], *, title: str, anchor: str, rows: Mapping[str, int]
) -> Publication:
    """Text files, whose MD5 one listing gives."""
    files = [
        PublishedFile(f"{file}.bz2", f"{base}/{file}.bz2", None, Checksum("md5", digest, confirmed=False))
        for file, digest in listing.items()
    ]
    forms = {"libsvm": tuple((f"{file}.bz2", file) for file in listing)}
    return Publication(name, title, f"{LIBSVM}.html#{anchor}", tuple(files), forms, rows)


_PUBLICATIONS = (
    Publication(
        name="digits",
        title="8 × 8 handwritten digits, part of scikit-learn",
        page="https://scikit-learn.org/stable/datasets/toy_dataset.html",
        rows={"all": 1797},
    ),
    _idx(
        "mnist",
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        (9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        (28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        (1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        (4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        title="MNIST: 28 × 28 handwritten digits",
        page="http://yann.lecun.com/exdb/mnist/",
        class_counts={
            "train": (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
            "test": (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
        },
    ),
    _idx(
        "fashion_mnist",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        (26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        (29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        (4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        (5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
        title="Fashion-MNIST: 28 × 28 pictures of clothes",
        page="https://github.com/zalandoresearch/fashion-mnist",
        class_counts={"train": (6000,) * 10, "test": (1000,) * 10},
    ),
    Publication(
        name="connect4",
        title="Connect-4: who wins from a position after eight moves",
        page="https://archive.ics.uci.edu/dataset/26/connect+4",
        files=(
            PublishedFile(
                "connect+4.zip",
                "https://archive.ics.uci.edu/static/public/26/connect+4.zip",
                content=Content(
                    "connect-4.data",
                    5_968_100,
                    _sha256("063152e6eadbb424c7ef4645df76e493a43812edd9c992400983da4fa54f8cba"),
                ),
            ),
        ),
        forms={
            "npz": (("connect4.npz",),),
            "uci": (("connect-4.data", "connect-4.data.Z", "connect+4.zip", "connect-4.zip"),),
        },
        rows={"all": 67_557},
        class_counts={"all": (6449, 16635, 44473)},
    ),
    _libsvm(
        "sensit",
        f"{LIBSVM}/vehicle",
        {"combined": "5716b20b0a3817429fc52ecb356f2897", "combined.t": "966abb2dfc7c82836fa3b55effd537f4"},
        title="SensIT Vehicle (combined): vehicles heard by sensors",
        anchor="SensIT%20Vehicle%20(combined)",
        rows={"train": 78_823, "test": 19_705},
    ),
    _libsvm(
        "protein",
        LIBSVM,
        {
            "protein.tr": "ff0b0904aa0954ff620e5429e96b4790",
            "protein.val": "10b0c58a0ecf47ea045f53e560841740",
            "protein.t": "bf94d04967234fc1f8ebf534e7678bb6",
        },
        title="Protein: secondary structure along amino acids",
        anchor="protein",
        rows={"train": 14_895, "valid": 2_871, "test": 6_621},
    ),
    Publication(
        name="isbi",
        title="ISBI 2012: membranes in electron microscopy",
        page="https://imagej.net/events/isbi-2012-segmentation-challenge",
        files=(PublishedFile("ISBI-2012-challenge.zip", "https://downloads.imagej.net/ISBI-2012-challenge.zip"),),
        forms={
            "npz": (("isbi2012_em.npz",),),
            "tif": (("train-volume.tif",), ("train-labels.tif",)),
            "png": (("train-volume/", "train/image/"), ("train-labels/", "train/label/")),
            "zip": (("ISBI-2012-challenge.zip",),),
        },
        rows={"all": 30},
    ),
)

CATALOG: dict[str, Publication] = {publication.name: publication for publication in _PUBLICATIONS}
"""The data sets by the name that loaders and commands give them."""
