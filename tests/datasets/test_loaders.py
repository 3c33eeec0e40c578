"""Every loader, on small files of the publisher's form that the tests write."""

import hashlib
import zipfile

import numpy as np
import pytest

from crisptree.datasets import (
    DataFormatError,
    load_connect4,
    load_fashion_mnist,
    load_isbi,
    load_letter,
    load_mnist,
    load_protein,
    load_sensit,
    load_usps,
)
from crisptree.datasets.catalog import Content, PublishedFile
from tests.datasets.writers import compress, write_libsvm, write_mnist

PARTS = ("train", "valid", "test")


def parts(dataset, letter):
    return [getattr(dataset, f"{letter}_{part}") for part in PARTS]


def same(one, other):
    return all(
        np.array_equal(a, b) for letter in "Xy" for a, b in zip(parts(one, letter), parts(other, letter), strict=True)
    )


def sorted_rows(*arrays):
    return np.array(sorted(np.concatenate(arrays).tolist()))


class TestMnist:
    @pytest.fixture
    def arrays(self, published):
        generator = np.random.default_rng(0)
        y, y_test = np.repeat(np.arange(10), 10), np.repeat(np.arange(10), 3)
        for name in ("mnist", "fashion_mnist"):
            counts = {"train": (10,) * 10, "test": (3,) * 10}
            published(name, rows={"train": 100, "test": 30}, class_counts=counts)
        X, X_test = (generator.integers(0, 256, (n, 28, 28), dtype=np.uint8) for n in (100, 30))
        return X, y, X_test, y_test

    @pytest.mark.parametrize(
        ("load", "name"), [(load_mnist, "mnist"), (load_fashion_mnist, "fashion_mnist")], ids=["mnist", "fashion"]
    )
    @pytest.mark.parametrize("form", [".gz", "", ".npz"])
    def test_all_forms_give_the_official_test_part_and_a_fifth_for_validation(self, load, name, form, arrays, tmp_path):
        X, y, X_test, y_test = arrays
        if form == ".npz":
            np.savez(tmp_path / f"{name}.npz", X_train=X, y_train=y, X_test=X_test, y_test=y_test)
        else:
            write_mnist(tmp_path / name, *arrays, ending=form)
        data = load(tmp_path)
        assert [part.shape for part in parts(data, "X")] == [(80, 784), (20, 784), (30, 784)]
        assert {part.dtype.name for part in parts(data, "X")} == {"float32"}
        assert {part.dtype.name for part in parts(data, "y")} == {"int64"}
        assert np.array_equal(data.X_test, X_test.reshape(30, 784))
        assert np.array_equal(sorted_rows(data.X_train, data.X_valid), sorted_rows(X.reshape(100, 784)))
        assert np.bincount(data.y_valid).tolist() == [2] * 10
        assert len(data.class_names) == 10
        assert data.image_shape == (28, 28)

    def test_the_seed_draws_the_validation_part_only(self, arrays, tmp_path):
        write_mnist(tmp_path, *arrays)
        first, again, other = load_mnist(tmp_path), load_mnist(tmp_path), load_mnist(tmp_path, seed=1)
        assert same(first, again)
        assert not np.array_equal(first.X_valid, other.X_valid)
        assert np.array_equal(first.X_test, other.X_test)

    def test_every_row_keeps_its_label(self, arrays, tmp_path):
        X, y, X_test, y_test = arrays
        X[:, 0, 0] = y
        write_mnist(tmp_path, X, y, X_test, y_test)
        data = load_mnist(tmp_path)
        assert np.array_equal(data.X_train[:, 0], data.y_train)
        assert np.array_equal(data.X_valid[:, 0], data.y_valid)

    def test_fashion_is_not_taken_for_mnist(self, arrays, published, tmp_path):
        write_mnist(tmp_path, *arrays)
        published("mnist", class_counts={"train": (9, 11, *(10,) * 8)})
        assert load_fashion_mnist(tmp_path)
        with pytest.raises(DataFormatError, match=r"files of the same names, so keep each in a folder.*\(mnist/\)"):
            load_mnist(tmp_path)

    def test_images_and_labels_must_fit_each_other(self, arrays, tmp_path):
        X, y, X_test, y_test = arrays
        write_mnist(tmp_path, X[:, :27], y, X_test, y_test)
        with pytest.raises(DataFormatError, match=r"must be of shape \(100, 28, 28\)"):
            load_mnist(tmp_path)
        write_mnist(tmp_path, X, y[:-1], X_test, y_test)
        with pytest.raises(DataFormatError, match="has 100 rows; these files have 99"):
            load_mnist(tmp_path)
        write_mnist(tmp_path, X, np.full(100, 10), X_test, y_test)
        with pytest.raises(DataFormatError, match="one of 10 classes per row"):
            load_mnist(tmp_path)


class TestConnect4:
    @pytest.fixture
    def cells(self, published):
        published("connect4", rows={"all": 50}, class_counts={"all": (10, 15, 25)})
        return np.random.default_rng(0).integers(0, 3, (50, 42)), np.repeat([0, 1, 2], [10, 15, 25])

    @pytest.fixture
    def text(self, cells):
        X, y = cells
        ends = ("draw", "loss", "win")
        rows = (",".join([*("box"[cell] for cell in row), ends[end]]) for row, end in zip(X, y, strict=True))
        return ("\n".join(rows) + "\n").encode()

    @pytest.fixture(autouse=True)
    def known_content(self, text, published):
        content = Content("connect-4.data", hashlib.sha256(text).hexdigest())
        published("connect4", files=(PublishedFile("connect+4.zip", "", content=content),))

    def test_an_archive_of_other_content_is_refused(self, text, tmp_path):
        self.write(tmp_path, "connect+4.zip", text.replace(b"win", b"loss", 1))
        with pytest.raises(DataFormatError, match=r"connect-4\.data in .*connect\+4\.zip must have the SHA-256"):
            load_connect4(tmp_path)

    def write(self, folder, name, text):
        if name.endswith(".zip"):
            with zipfile.ZipFile(folder / name, "w") as archive:
                archive.writestr("connect-4.names", "about")
                archive.writestr("connect-4.data.Z", compress(text))
        else:
            (folder / name).write_bytes(compress(text) if name.endswith(".Z") else text)

    @pytest.mark.parametrize("name", ["connect-4.data", "connect-4.data.Z", "connect+4.zip", "connect-4.zip"])
    def test_all_forms_give_the_same_one_hot_rows(self, name, cells, text, tmp_path):
        X, y = cells
        np.savez(tmp_path / "connect4.npz", X=X.astype(np.int8), y=y.astype(np.int8))
        compact = load_connect4(tmp_path)
        (tmp_path / "connect4.npz").unlink()
        self.write(tmp_path, name, text)
        assert same(load_connect4(tmp_path), compact)
        assert [part.shape for part in parts(compact, "X")] == [(32, 126), (8, 126), (10, 126)]
        assert compact.class_names == ("draw", "loss", "win")
        back = np.concatenate(parts(compact, "X")).reshape(50, 42, 3)
        assert np.array_equal(back.sum(axis=2), np.ones((50, 42)))
        assert np.array_equal(sorted_rows(back.argmax(axis=2)), sorted_rows(X))

    def test_the_split_is_stratified_and_depends_on_the_seed(self, text, tmp_path):
        self.write(tmp_path, "connect-4.data", text)
        data = load_connect4(tmp_path)
        assert [np.bincount(y).tolist() for y in parts(data, "y")][2] == [2, 3, 5]
        assert same(data, load_connect4(tmp_path))
        assert not same(data, load_connect4(tmp_path, seed=1))

    def test_rows_that_are_no_positions_are_refused(self, text, tmp_path):
        for wrong in (text.replace(b"win", b"won", 1), text.replace(b"b,", b"z,", 1), text.replace(b"b,", b"", 1)):
            self.write(tmp_path, "connect-4.data", wrong)
            with pytest.raises(DataFormatError, match="42 times b, o or x and then win, loss or draw"):
                load_connect4(tmp_path)

    def test_cells_that_are_no_states_are_refused(self, cells, tmp_path):
        X, y = cells
        np.savez(tmp_path / "connect4.npz", X=X + 1, y=y)
        with pytest.raises(DataFormatError, match="must be 0"):
            load_connect4(tmp_path)


class TestSensit:
    @pytest.fixture
    def rows(self, published):
        published("sensit", rows={"train": 60, "test": 12})
        generator = np.random.default_rng(0)
        X, X_test = generator.normal(size=(60, 100)), generator.normal(size=(12, 100))
        X[:, -1] = X_test[:, -1] = 0  # a feature that no row mentions is there all the same
        return X, np.repeat([1, 2, 3], 20), X_test, np.repeat([1, 2, 3], 4)

    @pytest.mark.parametrize("ending", [".bz2", ""])
    def test_the_official_test_part_and_a_fifth_for_validation(self, rows, ending, tmp_path):
        X, y, X_test, y_test = rows
        write_libsvm(tmp_path / f"combined{ending}", X, y)
        write_libsvm(tmp_path / f"combined.t{ending}", X_test, y_test)
        data = load_sensit(tmp_path)
        assert [part.shape for part in parts(data, "X")] == [(48, 100), (12, 100), (12, 100)]
        assert np.allclose(data.X_test, X_test, rtol=1e-5)
        assert np.array_equal(data.y_test, y_test - 1)
        assert np.bincount(data.y_valid).tolist() == [4, 4, 4]
        assert data.class_names == ("1", "2", "3")

    def test_a_file_that_is_cut_short_is_refused(self, rows, tmp_path):
        X, y, X_test, y_test = rows
        write_libsvm(tmp_path / "combined", X[:-1], y[:-1])
        write_libsvm(tmp_path / "combined.t", X_test, y_test)
        with pytest.raises(DataFormatError, match="train part of sensit has 60 rows; these files have 59"):
            load_sensit(tmp_path)


class TestProtein:
    @pytest.fixture
    def files(self, tmp_path):
        generator = np.random.default_rng(0)
        files = {}
        for name, n in (("protein.tr", 9), ("protein.val", 6), ("protein.t", 3)):
            X = generator.integers(0, 101, (n, 357)) / 100 * (generator.random((n, 357)) < 0.3)
            files[name] = X, np.arange(n) % 3
            write_libsvm(tmp_path / f"{name}.bz2", *files[name], pair="  {}: {:.2f}")
        return files

    def test_the_official_split_is_kept_in_its_order(self, files, published, tmp_path):
        published("protein", rows={"train": 9, "valid": 6, "test": 3})
        data = load_protein(tmp_path)
        for (X, y), rows, labels in zip(files.values(), parts(data, "X"), parts(data, "y"), strict=True):
            assert np.array_equal(rows, X.astype(np.float32))
            assert np.array_equal(labels, y)

    def test_a_part_of_the_rows_is_not_accepted_as_protein(self, files, tmp_path):
        with pytest.raises(DataFormatError, match="train part of protein has 14,895 rows; these files have 9"):
            load_protein(tmp_path)


class TestIsbi:
    @pytest.fixture
    def stacks(self, monkeypatch):
        monkeypatch.setattr("crisptree.datasets.loaders.ISBI_SHAPE", (6, 5))
        generator = np.random.default_rng(0)
        images = generator.integers(0, 256, (30, 6, 5), dtype=np.uint8)
        return images, generator.choice(np.array([0, 255], np.uint8), (30, 6, 5))

    def write(self, folder, form, images, labels):
        pillow = pytest.importorskip("PIL.Image")
        for name, stack in (("train-volume", images), ("train-labels", labels)):
            pages = [pillow.fromarray(page) for page in stack]
            pages[0].save(folder / f"{name}.tif", save_all=True, append_images=pages[1:])
        if form == "zip":
            with zipfile.ZipFile(folder / "ISBI-2012-challenge.zip", "w") as archive:
                for name in ("train-volume.tif", "train-labels.tif"):
                    archive.write(folder / name, f"ISBI-2012-challenge/{name}")
                    (folder / name).unlink()

    def check(self, data, images, labels):
        for part, span in zip(PARTS, (slice(0, 20), slice(20, 25), slice(25, 30)), strict=True):
            assert np.array_equal(getattr(data, f"X_{part}"), images[span])
            assert np.array_equal(getattr(data, f"y_{part}"), labels[span] == 255)
        assert data.class_names == ("membrane", "cell")
        assert data.image_shape == (6, 5)

    @pytest.mark.parametrize("form", ["tif", "zip"])
    def test_the_parts_are_runs_of_slices(self, form, stacks, tmp_path):
        self.write(tmp_path, form, *stacks)
        self.check(load_isbi(tmp_path), *stacks)

    def test_the_compact_form_gives_the_same(self, stacks, tmp_path):
        np.savez(tmp_path / "isbi2012_em.npz", X_train=stacks[0], y_train=stacks[1])
        self.check(load_isbi(tmp_path), *stacks)

    def test_other_stacks_are_refused(self, stacks, tmp_path):
        images, labels = stacks
        np.savez(tmp_path / "isbi2012_em.npz", X_train=images[:29], y_train=labels)
        with pytest.raises(DataFormatError, match=r"images of isbi must be of shape \(30, 6, 5\)"):
            load_isbi(tmp_path)
        np.savez(tmp_path / "isbi2012_em.npz", X_train=images, y_train=labels // 2)
        with pytest.raises(DataFormatError, match="these files hold other values"):
            load_isbi(tmp_path)


@pytest.mark.parametrize("ending", [".bz2", ""])
def test_usps_are_images_whose_labels_are_digits_plus_one(ending, published, tmp_path):
    published("usps", rows={"train": 100, "test": 20})
    X, X_test = (np.random.default_rng(0).uniform(-1, 1, (n, 256)) for n in (100, 20))
    write_libsvm(tmp_path / f"usps{ending}", X, np.repeat(np.arange(1, 11), 10))
    write_libsvm(tmp_path / f"usps.t{ending}", X_test, np.tile(np.arange(1, 11), 2))
    data = load_usps(tmp_path)
    assert [part.shape for part in parts(data, "X")] == [(80, 256), (20, 256), (20, 256)]
    assert np.allclose(data.X_test, X_test, rtol=1e-5)
    assert data.y_test.tolist() == [*range(10)] * 2
    assert data.image_shape == (16, 16)
    assert data.class_names == tuple("0123456789")


class TestLetter:
    @pytest.fixture
    def rows(self, published):
        published("letter", rows={"train": 52, "test": 5})
        X = np.random.default_rng(0).integers(0, 16, (57, 16))
        return X, [*"ABCDEFGHIJKLMNOPQRSTUVWXYZ" * 2, *"BZABC"]

    def write(self, folder, rows):
        lines = [",".join([name, *map(str, row)]) for row, name in zip(*rows, strict=True)]
        (folder / "letter-recognition.data").write_text("\n".join(lines) + "\n")

    def test_the_last_rows_of_the_file_are_the_test_part(self, rows, tmp_path):
        self.write(tmp_path, rows)
        data = load_letter(tmp_path)
        assert np.array_equal(data.X_test, rows[0][52:])
        assert data.y_test.tolist() == [1, 25, 0, 1, 2]
        assert [part.shape for part in parts(data, "X")] == [(41, 16), (11, 16), (5, 16)]
        assert np.array_equal(sorted_rows(data.X_train, data.X_valid), sorted_rows(rows[0][:52]))

    @pytest.mark.parametrize("wrong", ["a,", "A,-1,", "A,1,2,"])
    def test_rows_that_are_no_letters_are_refused(self, wrong, rows, tmp_path):
        self.write(tmp_path, rows)
        path = tmp_path / "letter-recognition.data"
        path.write_text(path.read_text().replace("A,", wrong, 1))
        with pytest.raises(DataFormatError, match="must be a capital letter and then 16 whole numbers; row 1 is"):
            load_letter(tmp_path)

    def test_a_file_that_is_cut_short_is_refused(self, rows, tmp_path):
        X, y = rows
        self.write(tmp_path, (X[:-1], y[:-1]))
        with pytest.raises(DataFormatError, match="the test part of letter has 5 rows; these files have 4"):
            load_letter(tmp_path)
