"""The pictures of the report in docs/guide/plots.md: ``make report-images``, or this module with a model file.

Needs MNIST. Without a model file it trains the tree of the pictures first, which takes minutes.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image

import crisptree
from crisptree.datasets import load_mnist
from crisptree.report import write

IMAGES = Path(__file__).parents[2] / "docs" / "images"
LARGEST = 300_000  # bytes

SCENES = {
    "report-light": ((1440, 1140), "light", ["[data-node='2'] image"]),
    "report-dark": (
        (1440, 900),
        "dark",
        ["#confusion td[data-true='4'][data-predicted='9']", "#gallery [data-sample] >> nth=3"],
    ),
    "report-phone": ((375, 1000), "light", ["[data-node='1'] image"]),
}
"""Size of the window, colors, and what is clicked one after the other."""


def main(model_file: str | None = None) -> None:
    from playwright.sync_api import sync_playwright  # `make report-images` brings it; other tests do without

    mnist = load_mnist()
    if model_file is None:
        model = crisptree.CrispTreeClassifier.paper(
            max_depth=8, epochs=15, finetune_epochs=25, spatial_penalty=1e-4, image_shape=(28, 28), random_state=0
        ).fit(mnist.X_train, mnist.y_train)
    else:
        model = crisptree.load(model_file)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = write(
            model, Path(folder) / "report.html", mnist.X_test, mnist.y_test, title="MNIST, one tree of depth 8"
        )
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, ((width, height), scheme, clicks) in SCENES.items():
            scale = 2 if width < 600 else 1
            tab = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=scale
            )
            tab.goto(page.as_uri())
            tab.wait_for_function("document.documentElement.dataset.ready === 'true'")
            for place in clicks:
                tab.click(place)
            if width < 600:
                tab.locator("#tree").evaluate("tree => tree.scrollIntoView()")
            tab.mouse.move(0, 0)
            tab.wait_for_timeout(900)  # the page scrolls smoothly
            tab.screenshot(path=IMAGES / f"{name}.png")
            optimise(IMAGES / f"{name}.png")
        browser.close()


def optimise(path: Path) -> None:
    """All colors are kept: they mean classes."""
    Image.open(path).convert("RGB").save(path, optimize=True)
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path} must be at most {LARGEST} bytes; it has {path.stat().st_size}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
