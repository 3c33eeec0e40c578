import base64
import json
import re
import zlib

import numpy as np
import pytest
import torch

from crisptree.report import write
from tests.toys import clouds, plain_tree

QUICK = {"max_depth": 3, "epochs": 3, "finetune_epochs": 2, "min_updates": 10, "random_state": 0}
EVIL = "</script><script>alert(1)</script>"
EVIL_FEATURE = '"><img src=x onerror=alert(2)>'


def fitted(n_features=6, n_classes=4, **changes):
    X, y = clouds(160, n_features=n_features, n_classes=n_classes)
    return plain_tree(**QUICK | changes).fit(X + 0.0, y), X, y


def linear_module(shape):
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(int(np.prod(shape)), 1))


KINDS = {
    "tabular": {},
    "image": {"image_shape": (2, 3)},
    "color image": {"image_shape": (2, 2, 3), "n_features": 12},
    "two channels": {"image_shape": (2, 2, 2), "n_features": 8},
    "one leaf": {"max_depth": 0},
    "one leaf of images": {"max_depth": 0, "image_shape": (2, 3)},
    "one feature": {"n_features": 1},
    "two classes": {"n_classes": 2},
    "26 classes": {"n_classes": 26, "max_depth": 6},
    "axis": {"split": "axis"},
    "module": {"split": linear_module},
    "module on images": {"split": linear_module, "image_shape": (2, 3)},
    "module, one leaf": {"split": linear_module, "max_depth": 0},
    "4,096 features": {"n_features": 4096, "max_depth": 2},
    "64 × 64 images": {"n_features": 4096, "max_depth": 2, "image_shape": (64, 64)},
}


@pytest.fixture
def page(tmp_path):
    """Write a report about a quick model; answers its text and its data."""

    def written(model, X=None, y=None, **names):
        text = write(model, tmp_path / "report.html", X, y, **names).read_text(encoding="utf-8")
        return text, data_of(text)

    return written


def data_of(text):
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.DOTALL)
    return json.loads(data)


def unpacked(packed):
    """The slow reading of what ``pack`` writes."""
    raw = zlib.decompress(base64.b64decode(packed["data"]))
    return np.frombuffer(raw, dtype=f"<{packed['dtype']}").reshape(packed["shape"])
