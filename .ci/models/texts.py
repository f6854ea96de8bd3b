"""Formats names and texts for both languages."""
import re
import textwrap

NOTE = "Written by .ci/client-models from openapi.yaml: change that, and run it."


def capital(text):
    return text[:1].upper() + text[1:]


def words_of(text):
    return [part for part in re.split(r"[^A-Za-z0-9]+", text) if part]


def camel(text):
    parts = words_of(text)
    if not parts:
        return text
    if len(parts) == 1 and not parts[0].isupper():
        return parts[0][0].lower() + parts[0][1:]
    return parts[0].lower() + "".join(capital(part.lower() if part.isupper() else part) for part in parts[1:])


def pascal(text):
    return capital(camel(text))


def singular(text):
    if text.endswith("ies"):
        return text[:-3] + "y"
    return text[:-1] if text.endswith("s") and not text.endswith("ss") else text


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def paragraphs(text, width):
    """Returns the lines of a description: wrapped paragraphs, and tables and code unchanged."""
    lines, paragraph = [], []

    def flush():
        if paragraph:
            lines.extend(textwrap.wrap(" ".join(paragraph), width, break_long_words=False, break_on_hyphens=False))
            paragraph.clear()

    for line in (text or "").strip().splitlines():
        if not line.strip() or line.startswith("|"):
            flush()
            lines.append(line.strip())
        else:
            paragraph.append(line.strip())
    flush()
    return lines


class Writer:
    def __init__(self):
        self.lines = []

    def add(self, indent, *lines):
        self.lines += [(" " * indent + line).rstrip() for line in lines]

    def text(self):
        return "\n".join(self.lines) + "\n"
