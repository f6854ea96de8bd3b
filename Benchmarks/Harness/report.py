"""Rows, and the table as text and as the section of Docs/performance.md."""

import dataclasses

from .figures import Figures

STEADY = 0.02  # difference that counts for a row that hardly varies between turns and is measured once
TURNS_MIN = 3  # with fewer turns, a difference larger than their spread is often chance
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def _one_line(text):
    return " ".join(str(text).split())


@dataclasses.dataclass(frozen=True)
class Goal:
    """The goal of a row: a ratio to its peer (`×`), or a value in the unit of the row."""
    limit: float
    unit: str = "×"
    is_upper: bool = False
    wording: str = ""

    @property
    def text(self):
        return self.wording or f"{'≤' if self.is_upper else '≥'} {self.limit:,g} {self.unit}"

    def verdict(self, figures, is_steady=False):
        if not figures:
            return "–"
        if len(figures) < 2 and not is_steady:
            return "unsure"
        distance = abs(figures.median - self.limit)
        if figures.spread > distance:
            return "unsure"
        return "yes" if (figures.median <= self.limit if self.is_upper else figures.median >= self.limit) else "NO"


def at_least(limit, unit="×", wording=""):
    return Goal(limit, unit, False, wording)


def at_most(limit, unit="×", wording=""):
    return Goal(limit, unit, True, wording)


class Comparison:
    """This binary divided by the other one, turn by turn. A difference within the spread of the turns is noise."""

    def __init__(self, ours, lower_is_better, is_steady=False):
        self.ratio = ours / ours.against
        self.lower_is_better, self.is_steady = lower_is_better, is_steady

    @property
    def verdict(self):
        if not self.ratio or len(self.ratio) < TURNS_MIN and not self.is_steady:
            return "unsure" if self.ratio else ""
        difference = self.ratio.median - 1
        if abs(difference) <= (STEADY if self.is_steady else self.ratio.spread):
            return "noise"
        return "worse" if (difference > 0) == self.lower_is_better else "better"

    def is_worse_by(self, share):
        return self.verdict == "worse" and abs(self.ratio.median - 1) > share

    @property
    def text(self):
        return f"{self.ratio.text_with_spread(number='{:.3f}'.format)} {self.verdict}".strip()


@dataclasses.dataclass
class Row:
    what: str
    goal: str = ""
    ours: str = ""
    peers: str = ""
    ratio: str = ""
    met: str = "–"
    cores: str = ""
    comparison: Comparison | None = None

    @staticmethod
    def measured(what, ours, unit, goal=None, peer=None, peer_unit=None, beside="", is_steady=False):
        """Returns a row of figures. Ours are divided by `peer`; `beside` replaces the peer's text, or is shown alone.
        `is_steady` marks counts and values that hardly vary: one turn is enough."""
        ratio = ours / peer if peer is not None else Figures()
        is_ratio_judged = goal is None or goal.unit == "×"
        row = Row(what, goal.text if goal else "",
                  ours.text(unit) if ratio and is_ratio_judged else ours.text_with_spread(unit),
                  beside or (peer.text(peer_unit or unit) if peer is not None else ""))
        if ratio:
            row.ratio = ratio.text_with_spread()
        if goal:
            row.met = goal.verdict(ratio if is_ratio_judged else ours, is_steady)
        if ours.against is not None:
            lower = goal.is_upper if goal else not unit.endswith("/s")
            row.comparison = Comparison(ours, lower, is_steady)
        return row


class Report:
    def __init__(self, machine, is_comparing=False):
        self.machine, self.is_comparing, self.rows, self.curves = machine, is_comparing, [], []
        self.cores = ""  # the cores of the rows that are being measured

    def add(self, row):
        row.ours, row.peers, row.cores = _one_line(row.ours), _one_line(row.peers), self.cores
        self.rows.append(row)
        parts = [("peer", row.peers), ("ratio", row.ratio), ("goal", row.goal), ("met", row.met),
                 ("this / against", row.comparison.text if row.comparison else "")]
        print(f"  {row.what}: {row.ours}" + "".join(f" | {name} {text}" for name, text in parts if text), flush=True)

    def add_curve(self, title, header, table):
        self.curves.append((title, header, table))
        print("  " + title, flush=True)
        for line in [header] + table:
            print("    " + "  ".join(str(cell) for cell in line), flush=True)

    def worse_by(self, share):
        return [row for row in self.rows if row.comparison and row.comparison.is_worse_by(share)]

    def markdown(self, mode):
        header = ["measurement", "cores", "goal", "Bellhop", "compared with", "ratio", "met"] + (["this / against"] if self.is_comparing else [])
        lines = [f"Measured by `{mode}`. One run measures Bellhop and the others in turns. The table shows the median of the turns, "
                 "with the lowest and the highest in brackets. `unsure` means that this range includes the goal, or that a value "
                 "that varies was measured in one turn only. Cores: those of the server and of the load client.", "",
                 f"- Machine: {self.machine['machine']}", f"- Versions: {self.machine['versions']}",
                 f"- Pinning: {self.machine['pinning']}", ""] + _table(header, [self._cells(row) for row in self.rows])
        for title, header, table in self.curves:
            lines += ["", f"**{title}**", ""] + _table(header, table)
        return "\n".join(lines) + "\n"

    def _cells(self, row):
        cells = [row.what, row.cores, row.goal, row.ours, row.peers, row.ratio, row.met]
        return cells + ([row.comparison.text if row.comparison else ""] if self.is_comparing else [])

    def write(self, path, mode):
        """Replaces the text between the markers; people write the rest of the page."""
        page = path.read_text() if path.exists() else f"# Performance\n\n{BEGIN}\n{END}\n"
        if BEGIN not in page or END not in page:
            page += f"\n{BEGIN}\n{END}\n"
        head, rest = page.split(BEGIN, 1)
        _, tail = rest.split(END, 1)
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{head}{BEGIN}\n{self.markdown(mode)}{END}{tail}")


def _table(header, lines):
    def line(cells):
        return "| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |"

    return [line(header), "|" + "---|" * len(header)] + [line(cells) for cells in lines]
