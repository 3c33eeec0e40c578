r"""Escaping of names from users as string literals, comments and identifiers of every target language.

A name may contain quotation marks, line breaks, lone surrogates and comment delimiters; none may end the string.
"""

from __future__ import annotations

import json
import re

_IDENTIFIER = re.compile(r"[^0-9A-Za-z_]+")


def quote_javascript(text: str) -> str:
    r"""Quote a string of JavaScript, in ASCII, that may also appear in a script element of a page.

    Examples
    --------
    >>> print(quote_javascript('a"</script>\u2028'))
    "a\"\u003c/script\u003e\u2028"
    """
    return json.dumps(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def quote_c(text: str) -> str:
    r"""Quote a string of C99 and C++: its UTF-8 bytes, special ones in octal, so that no trigraph results.

    Examples
    --------
    >>> print(quote_c('"; system("x??/'))
    "\042; system(\042x\077\077/"
    """
    plain = set(range(32, 127)) - {ord('"'), ord("\\"), ord("?"), ord("%")}
    data = text.encode("utf-8", "surrogatepass")
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in data) + '"'


def quote_sql(text: str) -> str:
    """Quote a string of standard SQL.

    Examples
    --------
    >>> print(quote_sql("it's"))
    'it''s'
    """
    return "'" + _check_text(text).replace("'", "''") + "'"


def quote_sql_name(text: str) -> str:
    """Quote the name of a column or a table in standard SQL.

    Examples
    --------
    >>> print(quote_sql_name('say "x" now'))
    "say ""x"" now"
    """
    return '"' + _check_text(text).replace('"', '""') + '"'


def escape_comment(text: str) -> str:
    r"""Escape a text for a comment of any language: one line, ASCII, without comment delimiters.

    Examples
    --------
    >>> print(escape_comment("a */ b\n-- c"))
    a * / b - - c
    """
    line = " ".join(text.split()).encode("ascii", "backslashreplace").decode()
    line = re.sub(r"[^ -~]", "?", line)
    for pair in ("*/", "/*", "--", "//", "??", "<!", "->"):
        while pair in line:
            line = line.replace(pair, " ".join(pair))
    return line.rstrip("\\")


def make_identifier(text: str) -> str:
    """Make an identifier of every language: ASCII letters, digits and underscores.

    Examples
    --------
    >>> make_identifier("my model-2"), make_identifier("2 ü"), make_identifier("")
    ('my_model_2', 'model_2', 'model')
    """
    plain = _IDENTIFIER.sub("_", text).strip("_")
    if not plain or plain[0].isdigit():
        plain = f"model_{plain}".rstrip("_")
    return plain


def _check_text(text: str) -> str:
    """Return the text, if a database can store it."""
    if "\x00" in text or re.search("[\ud800-\udfff]", text):
        raise ValueError(
            f"names must be text that a database can hold; {text!r} has a null or half a character in it. Rename it."
        )
    return text
