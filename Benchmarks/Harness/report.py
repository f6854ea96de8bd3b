"""Rows, and the table as text and as the section of Docs/performance.md."""

import dataclasses

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def _one_line(text):
    return " ".join(str(text).split())


def _number(value):
    if value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


@dataclasses.dataclass
class Row:
    what: str
    goal: str = ""
    ours: str = ""
    peers: str = ""
    ratio: str = ""
    met: str = "–"

    @staticmethod
    def against(what, goal, ours, peer, unit, at_most=False, missing=None):
        """Ours divided by the peer's, held against a ratio."""
        text = f"{'≤' if at_most else '≥'} {goal:g} ×"
        if not ours or not peer:
            return Row(what, text, _number(ours) + " " + unit if ours else f"not available: {missing}",
                       _number(peer) + " " + unit if peer else f"not available: {missing}")
        ratio = ours / peer
        met = ratio <= goal if at_most else ratio >= goal
        return Row(what, text, f"{_number(ours)} {unit}", f"{_number(peer)} {unit}", f"{ratio:.2f}", "yes" if met else "NO")

    @staticmethod
    def at_most(what, goal, value, unit, peers="", missing=None):
        if value is None:
            return Row(what, f"≤ {goal:g} {unit}", f"not available: {missing}", peers)
        return Row(what, f"≤ {goal:g} {unit}", f"{_number(value)} {unit}", peers, "", "yes" if value <= goal else "NO")


class Report:
    def __init__(self, machine):
        self.machine, self.rows, self.curves = machine, [], []

    def add(self, row):
        row.ours, row.peers = _one_line(row.ours), _one_line(row.peers)
        self.rows.append(row)
        print(f"  {row.what}: {row.ours}"
              + (f" | peer {row.peers}" if row.peers else "") + (f" | ratio {row.ratio}" if row.ratio else "")
              + f" | goal {row.goal} | met: {row.met}", flush=True)

    def add_curve(self, title, header, table):
        self.curves.append((title, header, table))
        print("  " + title, flush=True)
        for line in [header] + table:
            print("    " + "  ".join(str(cell) for cell in line), flush=True)

    def has(self, what):
        return any(row.what == what for row in self.rows)

    def markdown(self, mode):
        lines = [f"Measured by `{mode}`; ours and the peers in turn within one run, medians of the turns.", "",
                 f"- Machine: {self.machine['machine']}", f"- Versions: {self.machine['versions']}",
                 f"- Pinning: {self.machine['pinning']}", "",
                 "| what | goal | ours | peer | ratio | met |", "|---|---|---|---|---|---|"]
        for row in self.rows:
            cells = (row.what, row.goal, row.ours, row.peers, row.ratio, row.met)
            lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
        for title, header, table in self.curves:
            lines += ["", f"**{title}**", "", "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
            lines += ["| " + " | ".join(str(cell) for cell in cells) + " |" for cells in table]
        return "\n".join(lines) + "\n"

    def write(self, path, mode):
        """Replaces what stands between the markers; the rest of the page is written by people."""
        page = path.read_text() if path.exists() else f"# Performance\n\n{BEGIN}\n{END}\n"
        if BEGIN not in page or END not in page:
            page += f"\n{BEGIN}\n{END}\n"
        head, rest = page.split(BEGIN, 1)
        _, tail = rest.split(END, 1)
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{head}{BEGIN}\n{self.markdown(mode)}{END}{tail}")
