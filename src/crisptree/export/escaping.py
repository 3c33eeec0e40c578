r"""Names from users as nothing but strings: the text of every target language goes through here.

A name may hold quotation marks, line ends, half characters and what ends a comment; none of it may end the string.
"""

from __future__ import annotations

import json
import re

_IDENTIFIER = re.compile(r"[^0-9A-Za-z_]+")


def javascript(text: str) -> str:
    r"""A string of JavaScript, in ASCII, that may also stand in a script element of a page.

    Examples
    --------
    >>> print(javascript('a"</script>\u2028'))
    "a\"\u003c/script\u003e\u2028"
    """
    return json.dumps(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def c(text: str) -> str:
    r"""A string of C99 and C++: its UTF-8 bytes, all but plain ones in octal, so that no trigraph joins in.

    Examples
    --------
    >>> print(c('"; system("x??/'))
    "\042; system(\042x\077\077/"
    """
    plain = set(range(32, 127)) - {ord('"'), ord("\\"), ord("?"), ord("%")}
    data = text.encode("utf-8", "surrogatepass")
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in data) + '"'


def sql(text: str) -> str:
    """A string of standard SQL; it knows one escape only.

    Examples
    --------
    >>> print(sql("it's"))
    'it''s'
    """
    return "'" + _without_null(text).replace("'", "''") + "'"


def sql_name(text: str) -> str:
    """The name of a column or a table in standard SQL.

    Examples
    --------
    >>> print(sql_name('say "x" now'))
    "say ""x"" now"
    """
    return '"' + _without_null(text).replace('"', '""') + '"'


def comment(text: str) -> str:
    r"""A text as it may stand in a comment of any target: one line, ASCII, and nothing that ends or opens a comment.

    Examples
    --------
    >>> print(comment("a */ b\n-- c"))
    a * / b - - c
    """
    line = " ".join(text.split()).encode("ascii", "backslashreplace").decode()
    line = re.sub(r"[^ -~]", "?", line)
    for pair in ("*/", "/*", "--", "//", "??", "<!", "->"):
        while pair in line:
            line = line.replace(pair, " ".join(pair))
    return line.rstrip("\\")


def identifier(text: str, otherwise: str = "model") -> str:
    """A name that every language takes for a variable: ASCII letters, digits and underscores.

    Examples
    --------
    >>> identifier("my model-2"), identifier("2 ü"), identifier("")
    ('my_model_2', 'model_2', 'model')
    """
    plain = _IDENTIFIER.sub("_", text).strip("_")
    if not plain or plain[0].isdigit():
        plain = f"{otherwise}_{plain}".rstrip("_")
    return plain


def _without_null(text: str) -> str:
    """The text, if a database can hold it at all."""
    if "\x00" in text or re.search("[\ud800-\udfff]", text):
        raise ValueError(
            f"names must be text that a database can hold; {text!r} has a null or half a character in it. Rename it."
        )
    return text
