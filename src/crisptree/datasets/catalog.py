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


def _files(base: str, *listing: tuple[str, int | None, Checksum | None]) -> tuple[PublishedFile, ...]:
    return tuple(PublishedFile(name, base + name, size, checksum) for name, size, checksum in listing)


def _sha256(digest: str) -> Checksum:
    return Checksum("sha256", digest)


def _unconfirmed_md5(digest: str) -> Checksum:
    return Checksum("md5", digest, confirmed=False)


def _idx(compact: str) -> dict[str, Form]:
    names = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
    return {"npz": ((compact,),), "idx": tuple((f"{name}.gz", name) for name in names)}


def _libsvm(*names: str) -> dict[str, Form]:
    return {"libsvm": tuple((f"{name}.bz2", name) for name in names)}


LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"

_PUBLICATIONS = (
    Publication(
        name="digits",
        title="8 × 8 handwritten digits, part of scikit-learn",
        page="https://scikit-learn.org/stable/datasets/toy_dataset.html",
        rows={"all": 1797},
    ),
    Publication(
        name="mnist",
        title="MNIST: 28 × 28 handwritten digits",
        page="http://yann.lecun.com/exdb/mnist/",
        files=_files(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            (
                "train-images-idx3-ubyte.gz",
                9_912_422,
                _sha256("440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
            ),
            (
                "train-labels-idx1-ubyte.gz",
                28_881,
                _sha256("3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
            ),
            (
                "t10k-images-idx3-ubyte.gz",
                1_648_877,
                _sha256("8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
            ),
            (
                "t10k-labels-idx1-ubyte.gz",
                4_542,
                _sha256("f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
            ),
        ),
        forms=_idx("mnist.npz"),
        rows={"train": 60_000, "test": 10_000},
        class_counts={
            "train": (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
            "test": (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
        },
    ),
    Publication(
        name="fashion_mnist",
        title="Fashion-MNIST: 28 × 28 pictures of clothes",
        page="https://github.com/zalandoresearch/fashion-mnist",
        files=_files(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            (
                "train-images-idx3-ubyte.gz",
                26_421_880,
                _sha256("3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
            ),
            (
                "train-labels-idx1-ubyte.gz",
                29_515,
                _sha256("a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
            ),
            (
                "t10k-images-idx3-ubyte.gz",
                4_422_102,
                _sha256("346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
            ),
            (
                "t10k-labels-idx1-ubyte.gz",
                5_148,
                _sha256("67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
            ),
        ),
        forms=_idx("fashion_mnist.npz"),
        rows={"train": 60_000, "test": 10_000},
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
    Publication(
        name="sensit",
        title="SensIT Vehicle (combined): vehicles heard by sensors",
        page=f"{LIBSVM}.html#SensIT%20Vehicle%20(combined)",
        files=_files(
            f"{LIBSVM}/vehicle/",
            ("combined.bz2", None, _unconfirmed_md5("5716b20b0a3817429fc52ecb356f2897")),
            ("combined.t.bz2", None, _unconfirmed_md5("966abb2dfc7c82836fa3b55effd537f4")),
        ),
        forms=_libsvm("combined", "combined.t"),
        rows={"train": 78_823, "test": 19_705},
    ),
    Publication(
        name="protein",
        title="Protein: secondary structure along amino acids",
        page=f"{LIBSVM}.html#protein",
        files=_files(
            f"{LIBSVM}/",
            ("protein.tr.bz2", None, _unconfirmed_md5("ff0b0904aa0954ff620e5429e96b4790")),
            ("protein.val.bz2", None, _unconfirmed_md5("10b0c58a0ecf47ea045f53e560841740")),
            ("protein.t.bz2", None, _unconfirmed_md5("bf94d04967234fc1f8ebf534e7678bb6")),
        ),
        forms=_libsvm("protein.tr", "protein.val", "protein.t"),
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
