"""CRISPTREE_ISA caps the instruction set of both compiled modules."""

import os
import subprocess
import sys

import pytest

from crisptree import native
from tests.golden import machine
from tests.golden.cases import FITS
from tests.golden.summary import summarize
from tests.native import instruction_sets

pytestmark = pytest.mark.skipif(native.router is None, reason="the kernels are not built")
SETS = native.router.instruction_sets() if native.router is not None else []


def imported(name, what="print(native.instruction_set)"):
    environment = os.environ | {"CRISPTREE_ISA": name}
    command = [sys.executable, "-c", f"from crisptree import native; {what}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def instruction_set():
    """A function that sets the instruction set of both modules; that of the process comes back afterwards."""

    def set_both(name):
        native.router.set_instruction_set(name)
        native.training.set_instruction_set(name)

    yield set_both
    set_both(native.instruction_set)


def test_the_variable_names_the_instruction_set_and_without_it_the_widest_is_used():
    assert imported(SETS[0]).stdout.split() == [SETS[0]]
    assert imported("").stdout.split() == [SETS[-1]]


def test_an_instruction_set_that_the_processor_lacks_is_refused():
    done = imported("mmx")
    assert done.returncode == 1
    assert f"CRISPTREE_ISA must name an instruction set of this processor, one of {', '.join(SETS)}" in done.stderr
    assert "got 'mmx'. Unset it to use the widest." in done.stderr
    for module in (native.router, native.training):
        with pytest.raises(ValueError, match="this processor has no instruction set 'mmx'"):
            module.set_instruction_set("mmx")


@pytest.mark.skipif("avx2" not in SETS, reason="the training steps are compiled once for this processor")
def test_training_uses_the_instruction_set_that_was_set(instruction_set):
    bits = {}
    for name in SETS:
        instruction_set(name)
        bits[name] = summarize(*FITS["em"]())["bits"]
    assert bits["scalar"] == bits["sse2"]
    assert bits["avx2"] != bits["sse2"], "fused multiply-add rounds once"


def test_every_instruction_set_is_in_the_matrix_of_the_tests():
    assert set(SETS) <= set(instruction_sets.CAPABILITIES)
    for name in SETS:
        assert instruction_sets.settings(name)["CRISPTREE_ISA"] == name


def test_sets_that_the_processor_lacks_are_skipped_with_a_line(monkeypatch, capsys):
    monkeypatch.setattr(instruction_sets.subprocess, "run", lambda *_, **__: pytest.fail("nothing must be run"))
    (lacking, *_) = set(instruction_sets.CAPABILITIES) - set(SETS)
    assert instruction_sets.main([lacking]) == 0
    assert f"{lacking}: skipped, this processor does not have it" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"instruction sets must be among scalar, .*; got mmx"):
        instruction_sets.main(["mmx"])


def test_golden_records_depend_on_instruction_set_and_processor(monkeypatch, tmp_path):
    descriptions = [machine.machine()]
    monkeypatch.setattr(native, "instruction_set", "another")
    descriptions.append(machine.machine())
    (tmp_path / "cpuinfo").write_text("vendor_id\t: A\ncpu family\t: 1\nmodel\t\t: 2\n\nvendor_id\t: B\n")
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    descriptions.append(machine.machine())
    assert descriptions[-1].endswith("A 1 2")
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "missing")
    descriptions.append(machine.machine())
    assert len(set(descriptions)) == 4
