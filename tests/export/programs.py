"""Headers as programs: compiled by any compiler, asked for rows in a file, on this machine or an emulated one."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np

from crisptree.export.c99.runner import DTYPES, ParsedHeader

STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror", "-O1")

COMPILERS = {
    "gcc": ("gcc", "-std=c99"),
    "gcc with fused products": ("gcc", "-std=gnu11", "-march=native", "-O3"),
    "g++": ("g++", "-x", "c++", "-std=c++98"),
    "g++ with fused products": ("g++", "-x", "c++", "-std=c++17", "-march=native", "-O3"),
    "clang": ("clang", "-std=c99"),
    "clang++": ("clang++", "-x", "c++", "-std=c++11", "-march=native", "-O3"),
    "32 bits, 80-bit floats": ("gcc", "-std=c99", "-m32", "-mfpmath=387"),
    "32 bits, as C++": ("g++", "-x", "c++", "-std=c++11", "-m32", "-mfpmath=387"),
    "sanitizers": ("gcc", "-std=c99", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
}

MAIN = """
#include <stdio.h>

static {given} rows[{n}][{width}];
static int32_t leaves[{n} * {trees}], classes[{n}];
static double says[{n} * {outputs}];

int main(int count, char **words)
{{
    FILE *file = fopen(words[count - 1], "rb");
    int i;
    if (file == 0 || fread(rows, sizeof(rows), 1, file) != 1) return 1;
    if (crisptree_predict_rows(rows[0], {n}, leaves, classes, says) != 0) return 2;
    fclose(file);
    for (i = 0; i < {n}; ++i) printf("%d %d\\n", (int)leaves[i], (int)classes[i]);
    return 0;
}}
"""


def can_compile(command, folder):
    """Whether a compiler, and what it links, is there."""
    if shutil.which(command[0]) is None:
        return False
    (folder / "empty.c").write_text("#include <stdio.h>\nint main(void) { return 0; }\n")
    tried = [*command, str(folder / "empty.c"), "-o", str(folder / "empty")]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


def asked(command, text, X, folder, n_outputs):
    """The leaf and the class of every row, as a program of its own says them; a single tree without an encoder."""
    header = ParsedHeader.of(text)
    (folder / f"{header.name}.h").write_text(text, encoding="ascii")
    words = {"given": header.input_type, "n": len(X), "width": X.shape[1], "trees": 1, "outputs": n_outputs}
    (folder / "main.c").write_text(header.driver(1) + MAIN.format(**words))
    np.ascontiguousarray(X).astype(DTYPES[header.input_type]).tofile(folder / "rows")
    program = folder / "program"
    built = [command[0], *STRICT, *command[1:], str(folder / "main.c"), "-o", str(program)]
    result = subprocess.run(built, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert not result.stderr
    done = subprocess.run([str(program), str(folder / "rows")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.array([line.split() for line in done.stdout.splitlines()], dtype=np.int64).T


ON_A_MICROBIT = """
extern uint32_t stack_top;
static char said[{n} + 2];

static void call(uint32_t what, const void *with)
{{
    register uint32_t number __asm__("r0") = what;
    register const void *argument __asm__("r1") = with;
    __asm__ volatile("bkpt 0xAB" : "+r"(number) : "r"(argument) : "memory");
}}

void start(void);
void start(void)
{{
    int i;
    for (i = 0; i < {n}; ++i) said[i] = (char)('A' + {name}_predict(rows[i]));
    said[{n}] = '\\n';
    call(4u, said);
    call(0x18u, (const void *)0x20026u);
    for (;;) {{ }}
}}

__attribute__((section(".vectors"), used)) static const void *const vectors[2] = {{&stack_top, (const void *)start}};
"""

MEMORY = """
MEMORY { flash (rx) : ORIGIN = 0, LENGTH = 256K  ram (rwx) : ORIGIN = 0x20000000, LENGTH = 16K }
stack_top = ORIGIN(ram) + LENGTH(ram);
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > flash
  .bss (NOLOAD) : { *(.bss*) *(COMMON) *(.data*) } > ram
}
ENTRY(start)
"""

CORTEX_M0 = ("arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb", "-std=gnu99", "-Os", "-ffreestanding", "-nostdlib")


def on_a_microbit(text, inputs, folder):
    """The classes of whole-number inputs, computed by an emulated Cortex-M0; and the sizes of the sections.  (n,)"""
    header = ParsedHeader.of(text)
    (folder / f"{header.name}.h").write_text(text, encoding="ascii")
    rows = ",\n".join("{" + ",".join(map(str, row)) + "}" for row in inputs.tolist())
    head = f'#define {header.name.upper()}_IMPLEMENTATION\n#include "{header.name}.h"\n'
    table = f"static const {header.row_type} rows[{len(inputs)}][{inputs.shape[1]}] = {{{rows}}};\n"
    (folder / "board.c").write_text(head + table + ON_A_MICROBIT.format(n=len(inputs), name=header.name))
    (folder / "board.ld").write_text(MEMORY)
    program = str(folder / "board.elf")
    built = [*CORTEX_M0, "-ffunction-sections", "-Wl,--gc-sections", "-T", str(folder / "board.ld")]
    built += [str(folder / "board.c"), "-o", program]
    result = subprocess.run(built, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    if shutil.which("qemu-system-arm") is None:
        return None
    run = ["qemu-system-arm", "-M", "microbit", "-nographic", "-semihosting-config", "enable=on,target=native"]
    run += ["-kernel", program]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=120)
    said = (done.stdout + done.stderr).strip().splitlines()[-1]
    return np.array([ord(letter) - ord("A") for letter in said])


def sizes(text, folder):
    """Bytes of flash, the most of stack, and what is not defined, of a header compiled for a Cortex-M0."""
    header = ParsedHeader.of(text)
    source, compiled = folder / f"{header.name}.h", folder / "sized.o"
    source.write_text(text, encoding="ascii")
    built = [*CORTEX_M0, "-std=c99", "-fstack-usage", "-x", "c", f"-D{header.name.upper()}_IMPLEMENTATION", "-c"]
    subprocess.run([*built, str(source), "-o", str(compiled)], check=True, capture_output=True)
    listed = subprocess.run(
        ["arm-none-eabi-size", "-A", str(compiled)], check=True, capture_output=True, text=True
    ).stdout
    kept = (".text", ".rodata", ".data")
    flash = sum(int(line.split()[1]) for line in listed.splitlines() if line.startswith(kept))
    used = dict(line.rpartition(":")[2].split("\t")[:2] for line in (folder / "sized.su").read_text().splitlines())
    called = {name: int(size) for name, size in used.items() if "quantize" not in name}
    last = [called.pop(f"{header.name}_{name}") for name in ("predict", "predict_proba")]  # nobody calls both at once
    unknown = subprocess.run(
        ["arm-none-eabi-nm", "-u", str(compiled)], check=True, capture_output=True, text=True
    ).stdout
    return flash, sum(called.values()) + max(last), unknown.split()[1::2]
