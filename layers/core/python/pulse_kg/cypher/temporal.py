"""The temporal values of a query: instants, dates and durations, to the millisecond and in UTC.

A subset of openCypher's: no local times, no named zones, years 1 to 9999. Finer fractions than a millisecond are cut.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from pulse_kg.cypher.faults import Fault, value_fault
from pulse_kg.domain.instants import Instant, format_instant, parse_instant

SECOND: Final = 1000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
"""Each in milliseconds."""
_MONTH_DAYS: Final = 30.436875  # the mean month of the Gregorian calendar, for fractions of a month and for the order of durations
_EPOCH: Final = date(1970, 1, 1).toordinal()
_FIRST: Final = (date.min.toordinal() - _EPOCH) * DAY
_LAST: Final = (date.max.toordinal() - _EPOCH + 1) * DAY - 1
_LONGEST: Final = 1 << 53  # of each part of a duration; far beyond the calendar, and exact as a float

_DATE_TEXT: Final = re.compile(
    r"(?P<year>\d{4})(?:-?W(?P<week>\d{2})(?:-?(?P<weekday>\d))?|-(?P<ordinal>\d{3})|(?P<ordinal2>\d{3})"
    r"|-(?P<month>\d{2})(?:-(?P<day>\d{2}))?|(?P<month2>\d{2})(?P<day2>\d{2})?)?",
    re.ASCII,
)
_TIME_TEXT: Final = re.compile(
    r"(?P<hour>\d{2})(?::?(?P<minute>\d{2})(?::?(?P<second>\d{2})(?:[.,](?P<fraction>\d+))?)?)?(?P<zone>[Zz]|[+-]\d{2}(?::?\d{2})?)?",
    re.ASCII,
)
_ZONE_TEXT: Final = re.compile(r"(?P<sign>[+-])(?P<hour>\d{2})(?::?(?P<minute>\d{2}))?", re.ASCII)
_AMOUNT: Final = r"([+-]?\d{1,18}(?:[.,]\d{1,18})?)"
_DURATION_TEXT: Final = re.compile(
    rf"([+-])?P(?=[\d+T-])(?:{_AMOUNT}Y)?(?:{_AMOUNT}M)?(?:{_AMOUNT}W)?(?:{_AMOUNT}D)?"
    rf"(?:T(?=[\d+-])(?:{_AMOUNT}H)?(?:{_AMOUNT}M)?(?:{_AMOUNT}S)?)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class DateTime:
    """An instant.

    Attributes:
        instant: Epoch milliseconds.
    """

    instant: Instant

    @property
    def text(self) -> str:
        """RFC 3339 with milliseconds and `Z`, as every tool shows an instant."""
        return format_instant(self.instant)


@dataclass(frozen=True, slots=True)
class Date:
    """A day of the calendar.

    Attributes:
        day: Days since 1970-01-01.
    """

    day: int

    @property
    def instant(self) -> Instant:
        """Its first millisecond."""
        return self.day * DAY

    @property
    def text(self) -> str:
        """As in ``2026-05-07``."""
        return _calendar(self.day).isoformat()


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time in three parts that are not carried into each other: neither months nor days have a fixed length.

    Attributes:
        months: Whole months.
        days: Whole days.
        milliseconds: The rest.
    """

    months: int = 0
    days: int = 0
    milliseconds: int = 0

    @property
    def text(self) -> str:
        """ISO 8601, as in ``P1Y2M10DT2H30M5.5S``; ``PT0S`` for none."""
        years, months = _split(self.months, 12)
        hours, rest = _split(self.milliseconds, HOUR)
        minutes, rest = _split(rest, MINUTE)
        day_part = "".join(f"{amount}{unit}" for amount, unit in ((years, "Y"), (months, "M"), (self.days, "D")) if amount)
        time_part = "".join(f"{amount}{unit}" for amount, unit in ((hours, "H"), (minutes, "M")) if amount)
        if rest:
            whole, fraction = divmod(abs(rest), SECOND)
            time_part += f"{'-' if rest < 0 else ''}{whole}{f'.{fraction:03}'.rstrip('0') if fraction else ''}S"
        return f"P{day_part}{'T' + time_part if time_part else ''}" if day_part or time_part else "PT0S"

    @property
    def mean(self) -> float:
        """About how long it is, in milliseconds; for an order only."""
        return (self.months * _MONTH_DAYS + self.days) * DAY + self.milliseconds


Temporal = DateTime | Date | Duration


def _calendar(day: int) -> date:
    return date.fromordinal(day + _EPOCH)


def _split(amount: int, unit: int) -> tuple[int, int]:
    """Whole units and rest, both with the sign of the amount."""
    whole, rest = divmod(abs(amount), unit)
    return (-whole, -rest) if amount < 0 else (whole, rest)


def date_time(instant: Instant) -> DateTime:
    """The DateTime at that instant.

    Raises:
        Fault: It is outside of the years 1 to 9999.
    """
    if not _FIRST <= instant <= _LAST:
        raise value_fault("NumberOutOfRange", "The time is outside of the years 1 to 9999.")
    return DateTime(instant)


def date_of(day: int) -> Date:
    """The Date at that day since 1970-01-01; errors as in `date_time`."""
    if not _FIRST <= day * DAY <= _LAST:
        raise value_fault("NumberOutOfRange", "The date is outside of the years 1 to 9999.")
    return Date(day)


def duration_of(months: float, days: float, milliseconds: float) -> Duration:
    """The Duration of these parts; a fraction of a month becomes days, a fraction of a day milliseconds, and the rest is cut.

    Raises:
        Fault: It is too long to be counted, or no number.
    """
    if not all(-_LONGEST < part < _LONGEST for part in (months, days, milliseconds)):
        raise value_fault("NumberOutOfRange", "The duration is too long.")
    whole_months = int(months)
    if months != whole_months:
        days += (months - whole_months) * _MONTH_DAYS
    whole_days = int(days)
    if days != whole_days:
        # Rounded first, for 1.1 days are 95,040,000 ms and not one less.
        milliseconds += round((days - whole_days) * DAY, 6)
    return Duration(whole_months, whole_days, int(round(milliseconds, 6)))


# Text.


def instant_of(text: str) -> Instant | None:
    """The instant that an RFC 3339 text names, as the properties of nodes do; None for any other text."""
    if len(text) < 10 or text[4] != "-" or text[7] != "-":  # noqa: PLR2004 - a date's length; most texts are told apart by this alone
        return None
    try:
        return parse_instant(text)
    except (ValueError, OverflowError):
        return None


def instant_in(value: Any) -> Instant | None:
    """The instant of a DateTime, of a Date's first millisecond, or of an RFC 3339 text; None for all else."""
    kind = type(value)
    if kind is DateTime or kind is Date:
        found: Instant = value.instant
        return found
    return instant_of(value) if kind is str else None


def _no_such(what: str, text: object) -> Fault:
    forms = {"date": "'2026-05-07'", "datetime": "'2026-05-07T16:30:00Z'", "duration": "'P30D' or 'PT2H30M'"}
    return value_fault("InvalidArgumentValue", f"{str(text)[:60]!r} is no {what}; write it like {forms[what]}.")


def _day_from_text(text: str) -> int | None:
    found = _DATE_TEXT.fullmatch(text)
    if found is None:
        return None
    parts = {key.rstrip("2"): int(value) for key, value in found.groupdict().items() if value is not None}
    return _day_from_parts(parts)


def _day_from_parts(parts: Mapping[str, int]) -> int | None:
    """Days since 1970-01-01 of year and month and day, or week and weekday, or quarter and its day, or day of the year; None if none."""
    year = parts["year"]
    try:
        if "week" in parts:
            return date.fromisocalendar(year, parts["week"], parts.get("weekday", 1)).toordinal() - _EPOCH
        if "ordinal" in parts:
            day = date(year, 1, 1) + timedelta(days=parts["ordinal"] - 1)
            return day.toordinal() - _EPOCH if day.year == year else None
        if "quarter" in parts:
            if not 1 <= parts["quarter"] <= 4:  # noqa: PLR2004 - quarters of a year
                return None
            first = date(year, 3 * parts["quarter"] - 2, 1)
            day = first + timedelta(days=parts.get("quarter_day", 1) - 1)
            return day.toordinal() - _EPOCH if (day.month - 1) // 3 == (first.month - 1) // 3 and day.year == year else None
        return date(year, parts.get("month", 1), parts.get("day", 1)).toordinal() - _EPOCH
    except (ValueError, OverflowError):
        return None


def _zone(text: str | None) -> int | None:
    """The offset of a zone in milliseconds; None if it is no offset. No zone is UTC."""
    if text is None or text in {"Z", "z"}:
        return 0
    found = _ZONE_TEXT.fullmatch(text)
    if found is None:
        return None
    hours, minutes = int(found["hour"]), int(found["minute"] or 0)
    if hours > 18 or minutes > 59:  # noqa: PLR2004 - the farthest offset of ISO zones
        return None
    return (hours * HOUR + minutes * MINUTE) * (-1 if found["sign"] == "-" else 1)


def _instant_from_text(text: str) -> Instant | None:
    day_text, joint, time_text = text.partition("T")
    day = _day_from_text(day_text)
    if day is None or not joint:
        return None if day is None else day * DAY
    found = _TIME_TEXT.fullmatch(time_text)
    zone = None if found is None else _zone(found["zone"])
    if found is None or zone is None:
        return None
    hour, minute, second = int(found["hour"]), int(found["minute"] or 0), int(found["second"] or 0)
    if hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004 - the ends of a clock
        return None
    fraction = int((found["fraction"] or "0").ljust(3, "0")[:3])
    return day * DAY + hour * HOUR + minute * MINUTE + second * SECOND + fraction - zone


# The constructors of the language.


_NAMES: Final = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "week": "week",
    "day": "day",
    "ordinalday": "ordinal",
    "dayofweek": "weekday",
    "dayofquarter": "quarter_day",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
    "millisecond": "millisecond",
    "microsecond": "microsecond",
    "nanosecond": "nanosecond",
}
_DAY_PARTS: Final = frozenset({"year", "quarter", "month", "week", "day", "ordinal", "weekday", "quarter_day"})
_CLOCK: Final = (("hour", 24, HOUR), ("minute", 60, MINUTE), ("second", 60, SECOND), ("millisecond", 1000, 1))


def _parts(given: Mapping[str, Any], what: str) -> dict[str, int]:
    """A map of components under this module's names."""
    parts: dict[str, int] = {}
    for key, value in given.items():
        name = _NAMES.get(key.lower())
        if name is None or (what == "date" and name not in _DAY_PARTS):
            raise value_fault("InvalidArgumentValue", f"A {what} has no component {key[:40]!r}.")
        if type(value) is not int:
            raise value_fault("InvalidArgumentType", f"The component {key!r} of a {what} is an integer.")
        parts[name] = value
    return parts


def _day_of_map(parts: dict[str, int], base: int | None, what: str) -> int:
    """The day that a map's components name, with those of `base` where the map has none of its own."""
    if base is not None and not parts.keys() & _DAY_PARTS:
        return base
    if base is not None:
        old = _calendar(base)
        iso = old.isocalendar()
        parts.setdefault("year", iso.year if "week" in parts else old.year)
        if not parts.keys() & {"week", "ordinal", "quarter"}:
            parts.setdefault("month", old.month)
            parts.setdefault("day", old.day)
        elif "week" in parts:
            parts.setdefault("weekday", iso.weekday)
    if "year" not in parts:
        raise value_fault("InvalidArgumentValue", f"A {what} made of components needs a year.")
    day = _day_from_parts(parts)
    if day is None:
        raise value_fault("InvalidArgumentValue", f"There is no such day: {', '.join(f'{k} {v}' for k, v in parts.items())}.")
    return day


def make_date(value: Any, now: Instant) -> Date | None:
    """`date(…)` of a text, a map of components (with `date` or `datetime` as their base), a date or an instant.

    Args:
        value: What it is made of; `now` where the query gives nothing.
        now: The time of the statement.

    Raises:
        Fault: It is of another kind, or names no day of the years 1 to 9999.
    """
    if value is None:
        return None
    if isinstance(value, Date):
        return value
    if isinstance(value, DateTime):
        return Date(value.instant // DAY)
    if isinstance(value, str):
        day = _day_from_text(value)
        if day is None:
            # An instant's text is what a node's properties hold: its day is meant.
            instant = instant_of(value)
            if instant is None:
                raise _no_such("date", value)
            day = instant // DAY
        return date_of(day)
    if isinstance(value, Mapping):
        given = {key: part for key, part in value.items() if key.lower() not in {"date", "datetime"}}
        base = next((part for key, part in value.items() if key.lower() in {"date", "datetime"}), None)
        known = None if base is None else make_date(base, now)
        return date_of(_day_of_map(_parts(given, "date"), None if known is None else known.day, "date"))
    raise value_fault("InvalidArgumentType", "date() takes a text, a map of components, a date or an instant.")


def make_datetime(value: Any, now: Instant) -> DateTime | None:
    """`datetime(…)` of a text, a map of components, a date or an instant; arguments and errors as for `make_date`."""
    if value is None:
        return None
    if isinstance(value, DateTime):
        return value
    if isinstance(value, Date):
        return DateTime(value.instant)
    if isinstance(value, str):
        instant = _instant_from_text(value)
        if instant is None:
            instant = instant_of(value)
        if instant is None:
            raise _no_such("datetime", value)
        return date_time(instant)
    if isinstance(value, Mapping):
        return _datetime_of_map({key.lower(): part for key, part in value.items()}, now)
    raise value_fault("InvalidArgumentType", "datetime() takes a text, a map of components, a date or an instant.")


def _datetime_of_map(given: dict[str, Any], now: Instant) -> DateTime:
    for key, unit in (("epochmillis", 1), ("epochseconds", SECOND)):
        if key in given:
            if len(given) > 1 or type(given[key]) is not int:
                raise value_fault("InvalidArgumentValue", f"{key} is an integer and stands alone.")
            return date_time(given[key] * unit)
    zone_text = given.pop("timezone", None)
    zone = _zone(zone_text) if zone_text is None or isinstance(zone_text, str) else None
    if zone is None:
        raise value_fault("InvalidArgumentValue", "A timezone is 'Z' or an offset such as '+02:00'; named zones are not supported.")
    base = given.pop("datetime", None)
    base = given.pop("date", None) if base is None else base
    known = None if base is None else make_datetime(base, now)
    parts = _parts(given, "datetime")
    local = 0 if known is None else known.instant + zone
    moment = _day_of_map(parts, None if known is None else local // DAY, "datetime") * DAY
    old_clock, finer = local % DAY, False
    for name, count, unit in _CLOCK:
        if name in parts:
            part, finer = parts[name], True
        else:
            part = 0 if finer else old_clock // unit % count
        if not 0 <= part < count:
            raise value_fault("InvalidArgumentValue", f"There is no {name} {part}.")
        moment += part * unit
    moment += parts.get("microsecond", 0) // 1000 + parts.get("nanosecond", 0) // 1_000_000
    return date_time(moment - zone)


_DURATION_PARTS: Final[Mapping[str, tuple[int, float]]] = {
    "years": (0, 12),
    "quarters": (0, 3),
    "months": (0, 1),
    "weeks": (1, 7),
    "days": (1, 1),
    "hours": (2, HOUR),
    "minutes": (2, MINUTE),
    "seconds": (2, SECOND),
    "milliseconds": (2, 1),
    "microseconds": (2, 1e-3),
    "nanoseconds": (2, 1e-6),
}
_DURATION_ORDER: Final = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")


def make_duration(value: Any) -> Duration | None:
    """`duration(…)` of an ISO 8601 text, a map of amounts such as ``{days: 30}``, or a duration.

    Raises:
        Fault: It is of another kind, not to be read, or too long.
    """
    if value is None or isinstance(value, Duration):
        return value
    if isinstance(value, str):
        found = _DURATION_TEXT.fullmatch(value)
        if found is None:
            raise _no_such("duration", value)
        sign = -1 if found[1] == "-" else 1
        texts = zip(_DURATION_ORDER, found.groups()[1:], strict=True)
        return _duration_of_amounts({name: sign * _number(text) for name, text in texts if text is not None})
    if isinstance(value, Mapping):
        amounts: dict[str, float] = {}
        for key, amount in value.items():
            if key.lower() not in _DURATION_PARTS:
                raise value_fault("InvalidArgumentValue", f"A duration has no component {key[:40]!r}; it has {', '.join(_DURATION_PARTS)}.")
            if type(amount) is not int and type(amount) is not float:
                raise value_fault("InvalidArgumentType", f"The component {key!r} of a duration is a number.")
            amounts[key.lower()] = amount
        return _duration_of_amounts(amounts)
    raise value_fault("InvalidArgumentType", "duration() takes a text such as 'P30D' or a map such as {days: 30}.")


def _number(text: str) -> float:
    return float(text.replace(",", ".")) if "." in text or "," in text else int(text)


def _duration_of_amounts(amounts: Mapping[str, float]) -> Duration:
    sums: list[float] = [0, 0, 0]
    for name, amount in amounts.items():
        part, factor = _DURATION_PARTS[name]
        sums[part] += amount * factor
    return duration_of(*sums)


# Arithmetic.


def _shift_months(day: int, months: int) -> int:
    """The same day of the month so many months later, or the last one of a shorter month."""
    if not months:
        return day
    old = _calendar(day)
    year, month = divmod(old.year * 12 + old.month - 1 + months, 12)
    if not 1 <= year <= 9999:  # noqa: PLR2004 - the calendar's years
        raise value_fault("NumberOutOfRange", "The date is outside of the years 1 to 9999.")
    return date(year, month + 1, min(old.day, calendar.monthrange(year, month + 1)[1])).toordinal() - _EPOCH


def negated(duration: Duration) -> Duration:
    """The same length backwards."""
    return Duration(-duration.months, -duration.days, -duration.milliseconds)


def shift(moment: DateTime | Date, duration: Duration) -> DateTime | Date:
    """A moment so much later: first by the months, then by the days, then by the rest; of a date only whole days of it.

    Raises:
        Fault: That is outside of the years 1 to 9999.
    """
    if isinstance(moment, Date):
        return date_of(_shift_months(moment.day, duration.months) + duration.days + _split(duration.milliseconds, DAY)[0])
    day, clock = divmod(moment.instant, DAY)
    return date_time((_shift_months(day, duration.months) + duration.days) * DAY + clock + duration.milliseconds)


def add_durations(one: Duration, other: Duration) -> Duration:
    """The sum, part by part."""
    return duration_of(one.months + other.months, one.days + other.days, one.milliseconds + other.milliseconds)


def scale(duration: Duration, factor: float) -> Duration:
    """So many times a duration; fractions go into the next smaller part."""
    return duration_of(duration.months * factor, duration.days * factor, duration.milliseconds * factor)


def _ends(start: Any, end: Any, name: str) -> tuple[DateTime | Date, DateTime | Date]:
    ends = []
    for value in (start, end):
        instant = instant_in(value)
        if instant is None:
            raise value_fault("InvalidArgumentType", f"{name}() takes two dates or instants.")
        ends.append(value if isinstance(value, DateTime | Date) else DateTime(instant))
    return ends[0], ends[1]


def _months_between(start: Instant, end: Instant) -> int:
    """Whole months from the one to the other, toward zero."""
    one, other = _calendar(start // DAY), _calendar(end // DAY)
    months = (other.year - one.year) * 12 + other.month - one.month
    one_rest, other_rest = (one.day, start % DAY), (other.day, end % DAY)
    if months > 0 and other_rest < one_rest:
        return months - 1
    if months < 0 and other_rest > one_rest:
        return months + 1
    return months


def between(start: Any, end: Any) -> Duration:
    """`duration.between(start, end)`: months, then days, then the rest, all of one sign. RFC 3339 text is taken as an instant."""
    first, last = _ends(start, end, "duration.between")
    months = _months_between(first.instant, last.instant)
    day, clock = divmod(first.instant, DAY)
    days, rest = _split(last.instant - (_shift_months(day, months) * DAY + clock), DAY)
    return Duration(months, days, rest)


def in_months(start: Any, end: Any) -> Duration:
    """`duration.inMonths(start, end)`: whole months alone."""
    first, last = _ends(start, end, "duration.inMonths")
    return Duration(months=_months_between(first.instant, last.instant))


def in_days(start: Any, end: Any) -> Duration:
    """`duration.inDays(start, end)`: whole days alone."""
    first, last = _ends(start, end, "duration.inDays")
    return Duration(days=_split(last.instant - first.instant, DAY)[0])


def in_seconds(start: Any, end: Any) -> Duration:
    """`duration.inSeconds(start, end)`: the time alone, in seconds and their fraction."""
    first, last = _ends(start, end, "duration.inSeconds")
    return Duration(milliseconds=last.instant - first.instant)


def _floor_day(unit: str, day: int) -> int | None:
    """The first day of the unit that a day is in; None if that is no unit of days."""
    on = _calendar(day)
    years = {"millennium": 1000, "century": 100, "decade": 10, "year": 1}.get(unit)
    if years is not None:
        first = on.year - on.year % years
        return None if first < 1 else date(first, 1, 1).toordinal() - _EPOCH
    if unit == "weekyear":
        return date.fromisocalendar(on.isocalendar().year, 1, 1).toordinal() - _EPOCH
    if unit in {"quarter", "month"}:
        month = on.month if unit == "month" else on.month - (on.month - 1) % 3
        return date(on.year, month, 1).toordinal() - _EPOCH
    return {"week": day - on.weekday(), "day": day}.get(unit)


def truncate_date(unit: Any, value: Any, now: Instant) -> Date | None:
    """`date.truncate(unit, value)`: the first day of the unit, from ``millennium`` down to ``day``, that the value is in."""
    known = make_date(value, now)
    if known is None or unit is None:
        return None
    day = _floor_day(unit.lower(), known.day) if isinstance(unit, str) else None
    if day is None:
        raise value_fault("InvalidArgumentValue", f"date.truncate() knows no unit {str(unit)[:40]!r} for this date.")
    return date_of(day)


def truncate_datetime(unit: Any, value: Any, now: Instant) -> DateTime | None:
    """`datetime.truncate(unit, value)`: the first millisecond of the unit, from ``millennium`` to ``millisecond``, that it is in."""
    known = make_datetime(value, now)
    if known is None or unit is None:
        return None
    if isinstance(unit, str):
        step = {"hour": HOUR, "minute": MINUTE, "second": SECOND, "millisecond": 1}.get(unit.lower())
        if step is not None:
            return DateTime(known.instant - known.instant % step)
        day = _floor_day(unit.lower(), known.instant // DAY)
        if day is not None:
            return date_time(day * DAY)
    raise value_fault("InvalidArgumentValue", f"datetime.truncate() knows no unit {str(unit)[:40]!r} for this time.")


# Components.


def _day_of_quarter(on: date) -> int:
    return (on - date(on.year, on.month - (on.month - 1) % 3, 1)).days + 1


_DAY_COMPONENTS: Final[Mapping[str, Callable[[date], int]]] = {
    "year": lambda on: on.year,
    "quarter": lambda on: (on.month + 2) // 3,
    "month": lambda on: on.month,
    "week": lambda on: on.isocalendar().week,
    "weekyear": lambda on: on.isocalendar().year,
    "day": lambda on: on.day,
    "ordinalday": lambda on: on.timetuple().tm_yday,
    "dayofweek": lambda on: on.isoweekday(),
    "weekday": lambda on: on.isoweekday(),
    "dayofquarter": _day_of_quarter,
    "quarterday": _day_of_quarter,
}
_CLOCK_COMPONENTS: Final[Mapping[str, Callable[[Instant], int | str]]] = {
    "hour": lambda at: at // HOUR % 24,
    "minute": lambda at: at // MINUTE % 60,
    "second": lambda at: at // SECOND % 60,
    "millisecond": lambda at: at % SECOND,
    "microsecond": lambda at: at % SECOND * 1000,
    "nanosecond": lambda at: at % SECOND * 1_000_000,
    "epochmillis": lambda at: at,
    "epochseconds": lambda at: at // SECOND,
    "timezone": lambda _: "Z",
    "offset": lambda _: "Z",
    "offsetminutes": lambda _: 0,
    "offsetseconds": lambda _: 0,
}
_DURATION_COMPONENTS: Final[Mapping[str, Callable[[Duration], int]]] = {
    "years": lambda d: _split(d.months, 12)[0],
    "quarters": lambda d: _split(d.months, 3)[0],
    "months": lambda d: d.months,
    "weeks": lambda d: _split(d.days, 7)[0],
    "days": lambda d: d.days,
    "hours": lambda d: _split(d.milliseconds, HOUR)[0],
    "minutes": lambda d: _split(d.milliseconds, MINUTE)[0],
    "seconds": lambda d: d.milliseconds // SECOND,
    "milliseconds": lambda d: d.milliseconds,
    "microseconds": lambda d: d.milliseconds * 1000,
    "nanoseconds": lambda d: d.milliseconds * 1_000_000,
    "quartersofyear": lambda d: _split(_split(d.months, 12)[1], 3)[0],
    "monthsofyear": lambda d: _split(d.months, 12)[1],
    "monthsofquarter": lambda d: _split(d.months, 3)[1],
    "daysofweek": lambda d: _split(d.days, 7)[1],
    "minutesofhour": lambda d: _split(_split(d.milliseconds, HOUR)[1], MINUTE)[0],
    "secondsofminute": lambda d: d.milliseconds // SECOND - 60 * _split(d.milliseconds, MINUTE)[0],
    "millisecondsofsecond": lambda d: d.milliseconds % SECOND,
    "microsecondsofsecond": lambda d: d.milliseconds % SECOND * 1000,
    "nanosecondsofsecond": lambda d: d.milliseconds % SECOND * 1_000_000,
}


def component(value: Temporal, key: str) -> int | str:
    """`value.key`, as in ``.year``, ``.epochMillis`` or ``.days``; the case of the name is free.

    Raises:
        Fault: The value has no such component.
    """
    name = key.lower()
    if isinstance(value, Duration):
        of_duration = _DURATION_COMPONENTS.get(name)
        if of_duration is not None:
            return of_duration(value)
        raise value_fault("InvalidArgumentValue", f"A duration has no component {key[:40]!r}.")
    of_day = _DAY_COMPONENTS.get(name)
    if of_day is not None:
        return of_day(_calendar(value.instant // DAY))
    of_clock = _CLOCK_COMPONENTS.get(name) if isinstance(value, DateTime) else None
    if of_clock is not None:
        return of_clock(value.instant)
    raise value_fault("InvalidArgumentValue", f"A {'date' if isinstance(value, Date) else 'datetime'} has no component {key[:40]!r}.")
