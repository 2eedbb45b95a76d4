"""The trend of one category as an SVG, drawn by hand: labels by truth above, the bound on misses below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from mcpdetect.score.history import Row

__all__ = ["trend_svg"]

_WIDTH, _LEFT, _RIGHT = 640, 56, 96
_TOP, _UPPER, _GAP, _LOWER = 44, 120, 34, 80
_HEIGHT = _TOP + _UPPER + _GAP + _LOWER + 40
# Okabe and Ito's colours, told apart by colour-blind readers too.
_COLORS = {"fires": "#d55e00", "silent": "#0072b2", "blind": "#7f7f7f", "misses": "#009e73"}
_BOUND = "detection.upper_percent"


@dataclass(frozen=True, slots=True)
class _Panel:
    top: int
    height: int
    most: float

    def y(self, value: float) -> float:
        return self.top + self.height * (1 - value / self.most)


def trend_svg(category: str, rows: Sequence[Row]) -> str:
    """Return the trend of a category.

    Args:
        category: its name.
        rows: the history, oldest first; those that know nothing of the category are left out.
    """
    known = [row for row in rows if f"{category} labels.fires" in row.facts]
    title = f"{category}: labels, and how many misses are still possible"
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="22" font-size="15" font-weight="bold" fill="#222222">{escape(title)}</text>',
    ]
    if not known:
        lines.append(f'<text x="{_LEFT}" y="60" fill="#222222">no row of the history yet</text>')
        return "\n".join([*lines, "</svg>"]) + "\n"
    series = {truth: [row.facts.get(f"{category} labels.{truth}", 0) for row in known] for truth in list(_COLORS)[:3]}
    upper = _Panel(_TOP, _UPPER, _ceiling(max(max(values) for values in series.values())))
    lower = _Panel(_TOP + _UPPER + _GAP, _LOWER, 100)
    lines += _axis(upper, "labels", "") + _axis(lower, "misses, at most", "%")
    lines += _named(series, upper)
    bounds = [row.facts.get(f"{category} {_BOUND}", 100) for row in known]
    lines += _named({"misses": bounds}, lower, "%")
    lines += _dates(known)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _ceiling(value: float) -> float:
    """Return a round number at or above a value, for the top of an axis."""
    for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000):
        if value <= step * 4:
            return step * 4.0
    return value


def _x(at: int, number: int) -> float:
    inside = _WIDTH - _LEFT - _RIGHT
    return _LEFT + (inside / 2 if number == 1 else inside * at / (number - 1))


def _axis(panel: _Panel, name: str, unit: str) -> list[str]:
    lines = [
        f'<text x="{_LEFT}" y="{panel.top - 6}" fill="#555555">{escape(name)}</text>',
    ]
    for part in range(5):
        value = panel.most * part / 4
        y = panel.y(value)
        lines.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#e0e0e0"/>')
        lines.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#555555">{value:g}{escape(unit)}</text>'
        )
    return lines


def _named(series: dict[str, list[float]], panel: _Panel, unit: str = "") -> list[str]:
    """Draw lines with their names at the right end, moved apart where they would overlap."""
    lines = []
    taken: list[float] = []
    for name, values in sorted(series.items(), key=lambda item: item[1][-1]):
        color = _COLORS[name]
        points = [(_x(at, len(values)), panel.y(value)) for at, value in enumerate(values)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points]
        y = points[-1][1] + 4
        if taken and taken[-1] - y < 14:
            y = taken[-1] - 14
        taken.append(y)
        told = f"{name} {values[-1]:g}{unit}"
        lines.append(f'<text x="{_WIDTH - _RIGHT + 8}" y="{y:.1f}" fill="{color}">{escape(told)}</text>')
    return lines


def _dates(rows: Sequence[Row]) -> list[str]:
    y = _HEIGHT - 14
    ends = [(0, "middle" if len(rows) == 1 else "start")] + ([(len(rows) - 1, "end")] if len(rows) > 1 else [])
    return [
        f'<text x="{_x(at, len(rows)):.1f}" y="{y}" text-anchor="{anchor}" fill="#555555">'
        f"{escape(rows[at].date)} {escape(rows[at].commit[:7])}</text>"
        for at, anchor in ends
    ]
