"""The numbered sentences of Docs/protocol.md, and the cases that cite them."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "Docs" / "protocol.md"
NUMBER = re.compile(r"S-[A-Z]+-\d+")


def sentences(text=None):
    """Returns the sentences by number, in the order of the page."""
    text = PAGE.read_text(encoding="utf-8") if text is None else text
    found = re.findall(r"^- \*\*(S-[A-Z]+-\d+)\*\* (.*?)(?=\n- \*\*|\n\n)", text, re.MULTILINE | re.DOTALL)
    return {number: " ".join(words.split()) for number, words in found}


def untested(text=None):
    """Returns the reasons of sentences that a test from outside cannot observe, by number."""
    text = PAGE.read_text(encoding="utf-8") if text is None else text
    return dict(re.findall(r"^\| (S-[A-Z]+-\d+) \| (.*?) \|$", text, re.MULTILINE))


def problems(text, cited):
    """Returns the contradictions between the page and the cases.

    - cited: the numbers that cases cite.
    """
    listed, reasons = sentences(text), untested(text)
    numbers = re.findall(r"^- \*\*(S-[A-Z]+-\d+)\*\*", text, re.MULTILINE)
    found = [f"{number} occurs twice" for number in listed if numbers.count(number) > 1]
    found += [f"a case cites {number}, which the page does not have" for number in cited if number not in listed]
    found += [f"the table of untested sentences has {number}, which the page does not have"
              for number in reasons if number not in listed]
    found += [f"a case cites {number}, which the page lists as untested" for number in cited if number in reasons]
    found += [f"no case cites {number}, and the page gives no reason" for number in listed
              if number not in cited and number not in reasons]
    found += [f"{number} has no key word of BCP 14" for number, words in listed.items()
              if not re.search(r"\b(MUST|SHOULD|MAY)\b", words)]
    return found
