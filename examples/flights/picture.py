# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Draws the delays of each day, from the changes of the view of days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from pyspark.sql import Row

LATE, EARLY, OVERNIGHT, CANCELLED = "#e76f51", "#2a9d8f", "#7b2d26", "#3d405b"
INK, MUTED = "#2b2d42", "#8d99ae"
WIDTH = 0.9
LABELLED = 4


@dataclass
class Day:
    """The delays of a day in the view, that evening and at the end."""

    day: date
    planned: int  # flights in the timetable
    that_evening: float = 0.0
    finally_: float = 0.0
    flown: int = 0

    @property
    def x(self) -> float:
        """The position of the day on the axis of dates."""
        return float(dates.date2num(self.day))

    @property
    def cancelled(self) -> int:
        """The number of cancelled flights."""
        return self.planned - self.flown


def follow(batches: Mapping[date, Sequence[Row]]) -> list[Day]:
    """Replay each evening's changes. Return each day's delays, that evening and at the end."""
    days: dict[date, Day] = {}
    for evening, changes in batches.items():
        for change in changes:
            if change["_change_type"] in ("insert", "update_postimage"):
                day = days.setdefault(change["day"], Day(change["day"], change["flights"]))
                day.flown = change["flights"]
                day.finally_ = change["arrival_delay"] or 0.0
                if evening == day.day:
                    day.that_evening = day.finally_
    return sorted(days.values(), key=lambda day: day.day)


def draw(days: Sequence[Day], path: Path) -> None:
    """Draw the average delay and the cancelled flights of each day."""
    figure = Figure(figsize=(13, 7.5), dpi=130)
    figure.set_layout_engine("constrained", h_pad=0.12, w_pad=0.12)
    delays, cancelled = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    period = f"{days[0].day:%-d %B} to {days[-1].day:%-d %B %Y}"
    figure.suptitle(
        f"How late were the flights from New York? {period}",
        x=0.012,
        ha="left",
        color=INK,
        fontsize=16,
        fontweight="bold",
    )
    _draw_delays(delays, days)
    _draw_cancelled(cancelled, days)
    locator = dates.DayLocator() if len(days) <= 14 else dates.AutoDateLocator()
    cancelled.xaxis.set_major_locator(locator)
    cancelled.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, show_offset=False))
    figure.savefig(path)


def _draw_delays(axes: Axes, days: Sequence[Day]) -> None:
    xs = [day.x for day in days]
    evening = [day.that_evening for day in days]
    overnight = [day.finally_ - day.that_evening for day in days]
    colours = [LATE if value > 0 else EARLY for value in evening]
    axes.bar(xs, evening, WIDTH, color=colours)
    axes.bar(xs, overnight, WIDTH, bottom=evening, color=OVERNIGHT)
    for day in _highest(days, [day.finally_ for day in days]):
        _label(axes, day, max(day.finally_, day.that_evening), f"{day.finally_:.0f} min")
    _style(axes, "Average delay on arrival, minutes")
    legend = {
        "late, as known that evening": LATE,
        "early, as known that evening": EARLY,
        "change by landings after midnight": OVERNIGHT,
    }
    axes.legend(
        handles=[Patch(color=colour, label=label) for label, colour in legend.items()],
        loc="lower right",
        bbox_to_anchor=(1, 1),
        frameon=False,
        ncols=3,
        labelcolor=INK,
    )


def _draw_cancelled(axes: Axes, days: Sequence[Day]) -> None:
    axes.bar([day.x for day in days], [day.cancelled for day in days], WIDTH, color=CANCELLED)
    for day in _highest(days, [day.cancelled for day in days]):
        _label(axes, day, day.cancelled, f"{day.cancelled} of {day.planned}")
    _style(axes, "Flights cancelled")


def _highest(days: Sequence[Day], values: Sequence[float]) -> list[Day]:
    """Pick the days to label: the highest values, at a distance from each other."""
    gap = len(days) / 12
    picked: list[Day] = []
    for value, day in sorted(zip(values, days, strict=True), key=lambda pair: -pair[0]):
        if value > 0 and all(abs((day.day - other.day).days) >= gap for other in picked):
            picked.append(day)
    return picked[:LABELLED]


def _label(axes: Axes, day: Day, height: float, text: str) -> None:
    axes.annotate(
        f"{day.day:%-d %b}: {text}",
        (day.x, height),
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
        fontsize=9,
        color=INK,
    )


def _style(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.spines[:].set_visible(False)
    axes.tick_params(colors=INK, length=0)
    axes.grid(axis="y", color=MUTED, alpha=0.25)
    axes.set_axisbelow(True)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.use_sticky_edges = False
    axes.margins(x=0.01, y=0.12)
