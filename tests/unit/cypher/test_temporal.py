"""Instants, dates and durations: read, written, compared by the calendar, and added to each other."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_kg.cypher import temporal, values
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.temporal import Date, DateTime, Duration, make_date, make_datetime, make_duration
from pulse_kg.domain.instants import format_instant, parse_instant
from tests.property.profile import fixed
from tests.support.cypher_values import NOW

days = st.dates(date(1, 1, 1), date(9999, 12, 31)).map(lambda day: Date((day - date(1970, 1, 1)).days))
moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)).map(  # noqa: DTZ001 - a zone is added below
    lambda at: DateTime((at.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1))
)
durations = st.builds(Duration, st.integers(-30, 30), st.integers(-800, 800), st.integers(-(10**9), 10**9))


def day(text: str) -> Date:
    made = make_date(text, NOW)
    assert made is not None
    return made


def at(text: str) -> DateTime:
    made = make_datetime(text, NOW)
    assert made is not None
    return made


def lasting(text: str) -> Duration:
    made = make_duration(text)
    assert made is not None
    return made


def kind_of_fault(make: Any, *arguments: Any) -> str:
    with pytest.raises(Fault) as refused:
        make(*arguments)
    assert refused.value.phase == "run"
    return refused.value.kind


class TestDates:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("2015-07-21", "2015-07-21"),
            ("20150721", "2015-07-21"),
            ("2015-07", "2015-07-01"),
            ("201507", "2015-07-01"),
            ("2015-W30-2", "2015-07-21"),
            ("2015W302", "2015-07-21"),
            ("2015-W30", "2015-07-20"),
            ("2015-W01-1", "2014-12-29"),
            ("2015-202", "2015-07-21"),
            ("2015202", "2015-07-21"),
            ("2015", "2015-01-01"),
            ("0001-01-01", "0001-01-01"),
            ("9999-12-31", "9999-12-31"),
            ("2024-02-29", "2024-02-29"),
            ("2026-05-07T23:30:00.000Z", "2026-05-07"),
            ("2026-05-07T23:30:00-02:00", "2026-05-08"),
        ],
    )
    def test_a_date_is_read_from_a_text(self, text: str, shown: str) -> None:
        assert day(text).text == shown

    @pytest.mark.parametrize(
        ("parts", "shown"),
        [
            ({"year": 1984, "month": 10, "day": 11}, "1984-10-11"),
            ({"year": 1984, "month": 10}, "1984-10-01"),
            ({"year": 1984}, "1984-01-01"),
            ({"year": 1984, "week": 10, "dayOfWeek": 3}, "1984-03-07"),
            ({"year": 1984, "week": 10}, "1984-03-05"),
            ({"year": 1984, "ordinalDay": 202}, "1984-07-20"),
            ({"year": 1984, "quarter": 3, "dayOfQuarter": 45}, "1984-08-14"),
            ({"year": 1984, "quarter": 3}, "1984-07-01"),
            ({"date": Date(0)}, "1970-01-01"),
            ({"date": Date(0), "day": 28}, "1970-01-28"),
            ({"date": "1984-10-11", "year": 1985}, "1985-10-11"),
            ({"datetime": DateTime(0), "week": 2}, "1970-01-08"),
        ],
    )
    def test_a_date_is_made_of_its_components(self, parts: dict[str, Any], shown: str) -> None:
        made = make_date(parts, NOW)
        assert made is not None
        assert made.text == shown

    @pytest.mark.parametrize(
        "wrong",
        [
            "",
            "today",
            "2015-13-01",
            "2015-02-29",
            "2015-7-1",
            "15-07-21",
            "2015-W54-1",
            "2015-366",
            "0000-01-01",
            "2015-07-21x",
            {},
            {"month": 1},
            {"year": 2015, "month": 13},
            {"year": 2015, "quarter": 5},
            {"year": 2015, "quarter": 1, "dayOfQuarter": 91},
            {"year": 2015, "ordinalDay": 366},
            {"year": 0},
            {"year": 10**30},
            {"year": 2015, "colour": 1},
            {"year": 2015, "hour": 1},
        ],
    )
    def test_what_names_no_day_is_refused(self, wrong: Any) -> None:
        assert kind_of_fault(make_date, wrong, NOW) == "InvalidArgumentValue"

    @pytest.mark.parametrize("wrong", [1, 1.5, True, [], Duration(), {"year": "2015"}, {"year": 2015.0}])
    def test_what_is_no_date_at_all_is_refused(self, wrong: Any) -> None:
        assert kind_of_fault(make_date, wrong, NOW) == "InvalidArgumentType"

    def test_a_date_of_an_instant_is_its_day_before_1970_too(self) -> None:
        assert make_date(DateTime(-1), NOW) == Date(-1)
        assert make_date(None, NOW) is None
        assert make_datetime(None, NOW) is None
        assert make_duration(None) is None

    @fixed(200)
    @given(days)
    def test_a_date_comes_back_from_its_text_and_from_its_components(self, value: Date) -> None:
        assert make_date(value.text, NOW) == value
        for parts in (("year", "month", "day"), ("year", "ordinalDay"), ("year", "quarter", "dayOfQuarter")):
            assert make_date({part: temporal.component(value, part) for part in parts}, NOW) == value
        week = {
            "year": temporal.component(value, "weekYear"),
            "week": temporal.component(value, "week"),
            "dayOfWeek": temporal.component(value, "dayOfWeek"),
        }
        if week["year"] not in {0, 10_000}:
            assert make_date(week, NOW) == value


class TestInstants:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("2026-05-07T16:30:00.250Z", "2026-05-07T16:30:00.250Z"),
            ("2015-07-21T21:40:32.142+0100", "2015-07-21T20:40:32.142Z"),
            ("2015-07-21T21:40:32.142+01", "2015-07-21T20:40:32.142Z"),
            ("2015-W30-2T214032.142Z", "2015-07-21T21:40:32.142Z"),
            ("2015T214032-0100", "2015-01-01T22:40:32.000Z"),
            ("20150721T21:40-01:30", "2015-07-21T23:10:00.000Z"),
            ("2015-W30T2140-02", "2015-07-20T23:40:00.000Z"),
            ("2015202T21", "2015-07-21T21:00:00.000Z"),
            ("2015-07-21T21:40:32.1429999", "2015-07-21T21:40:32.142Z"),
            ("2015-07-21", "2015-07-21T00:00:00.000Z"),
            ("2015-07-21 21:40:32Z", "2015-07-21T21:40:32.000Z"),
        ],
    )
    def test_an_instant_is_read_from_a_text_and_is_in_utc(self, text: str, shown: str) -> None:
        assert at(text).text == shown

    @pytest.mark.parametrize(
        ("parts", "shown"),
        [
            (
                {"year": 1984, "month": 10, "day": 11, "hour": 12, "minute": 31, "second": 14, "millisecond": 645},
                "1984-10-11T12:31:14.645Z",
            ),
            ({"year": 1984, "month": 10, "day": 11, "hour": 12, "timezone": "+01:00"}, "1984-10-11T11:00:00.000Z"),
            ({"year": 1984, "week": 10, "dayOfWeek": 3, "hour": 1}, "1984-03-07T01:00:00.000Z"),
            ({"year": 1984, "second": 14, "microsecond": 645_876, "nanosecond": 3}, "1984-01-01T00:00:14.645Z"),
            ({"date": Date(0), "hour": 1}, "1970-01-01T01:00:00.000Z"),
            ({"datetime": DateTime(3_723_004), "minute": 0}, "1970-01-01T01:00:00.000Z"),
            ({"datetime": DateTime(3_723_004), "day": 2}, "1970-01-02T01:02:03.004Z"),
            ({"epochMillis": 1}, "1970-01-01T00:00:00.001Z"),
            ({"epochSeconds": -1}, "1969-12-31T23:59:59.000Z"),
        ],
    )
    def test_an_instant_is_made_of_its_components(self, parts: dict[str, Any], shown: str) -> None:
        made = make_datetime(parts, NOW)
        assert made is not None
        assert made.text == shown

    @pytest.mark.parametrize(
        "wrong",
        [
            "",
            "now",
            "2015-07-21T",
            "2015-07-21T24:00",
            "2015-07-21T23:60",
            "2015-07-21T23:59:60",
            "2015-07-21T21:40+19:00",
            "2015-07-21T21:40[Europe/Berlin]",
            {"year": 2015, "hour": 24},
            {"year": 2015, "millisecond": -1},
            {"year": 2015, "timezone": "Europe/Berlin"},
            {"year": 2015, "timezone": 1},
            {"epochMillis": 1, "year": 2015},
            {"epochMillis": "1"},
            {"hour": 1},
        ],
    )
    def test_what_names_no_instant_is_refused(self, wrong: Any) -> None:
        assert kind_of_fault(make_datetime, wrong, NOW) == "InvalidArgumentValue"

    def test_the_calendar_ends_with_the_years_1_and_9999(self) -> None:
        for beyond in ({"epochMillis": 10**18}, {"epochMillis": -(10**18)}, "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"):
            assert kind_of_fault(make_datetime, beyond, NOW) == "NumberOutOfRange"
        assert at("9999-12-31T23:59:59.999Z").text == "9999-12-31T23:59:59.999Z"

    @fixed(200)
    @given(moments)
    def test_an_instant_comes_back_from_its_text_which_is_the_one_of_every_tool(self, value: DateTime) -> None:
        assert value.text == format_instant(value.instant)
        assert make_datetime(value.text, NOW) == value
        assert temporal.instant_of(value.text) == value.instant == parse_instant(value.text)
        assert make_datetime({"epochMillis": temporal.component(value, "epochMillis")}, NOW) == value


class TestDurations:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("P14DT16H12M", "P14DT16H12M"),
            ("P5M1.5D", "P5M1DT12H"),
            ("P0.75M", "P22DT19H51M49.5S"),
            ("PT0.75M", "PT45S"),
            ("P2.5W", "P17DT12H"),
            ("P1Y14M", "P2Y2M"),
            ("-P1D", "P-1D"),
            ("P-1Y2M", "P-10M"),
            ("PT-1.5S", "PT-1.5S"),
            ("PT0.0004S", "PT0S"),
            ("PT1,5H", "PT1H30M"),
            ("P0D", "PT0S"),
            ("PT90M", "PT1H30M"),
            ("P40D", "P40D"),
            ("PT1.1S", "PT1.1S"),
            ("P1.1D", "P1DT2H24M"),
        ],
    )
    def test_a_duration_is_read_from_a_text_and_written_in_its_parts(self, text: str, shown: str) -> None:
        assert lasting(text).text == shown

    @pytest.mark.parametrize(
        ("parts", "shown"),
        [
            ({"days": 30}, "P30D"),
            ({"years": 1, "quarters": 1, "months": 1, "weeks": 1, "days": 1}, "P1Y4M8D"),
            ({"hours": 1, "minutes": 1, "seconds": 1, "milliseconds": 1}, "PT1H1M1.001S"),
            ({"microseconds": 1_999, "nanoseconds": 1_000}, "PT0.002S"),
            ({"months": 0.75}, "P22DT19H51M49.5S"),
            ({"days": -1, "hours": 24}, "P-1DT24H"),
            ({"DAYS": 1}, "P1D"),
            ({}, "PT0S"),
        ],
    )
    def test_a_duration_is_made_of_its_components(self, parts: dict[str, Any], shown: str) -> None:
        made = make_duration(parts)
        assert made is not None
        assert made.text == shown

    @pytest.mark.parametrize("wrong", ["", "P", "PT", "P1DT", "1D", "P1S", "PT1D", "P1D2", "P D", "30 days", {"fortnights": 1}])
    def test_what_is_no_duration_is_refused(self, wrong: Any) -> None:
        assert kind_of_fault(make_duration, wrong) == "InvalidArgumentValue"

    @pytest.mark.parametrize("wrong", [1, [], Date(0), {"days": "1"}, {"days": None}, {"days": True}])
    def test_what_is_of_another_kind_is_refused(self, wrong: Any) -> None:
        assert kind_of_fault(make_duration, wrong) == "InvalidArgumentType"

    @pytest.mark.parametrize("parts", [{"days": 10**18}, {"years": 1e300}, {"seconds": float("nan")}, {"months": float("inf")}])
    def test_a_duration_that_can_not_be_counted_is_refused(self, parts: dict[str, Any]) -> None:
        assert kind_of_fault(make_duration, parts) == "NumberOutOfRange"

    @fixed(200)
    @given(durations)
    def test_a_duration_comes_back_from_its_text(self, value: Duration) -> None:
        assert make_duration(value.text) == value


class TestArithmetic:
    @pytest.mark.parametrize(
        ("moment", "duration", "later"),
        [
            ("2024-01-31", "P1M", "2024-02-29"),
            ("2023-01-31", "P1M", "2023-02-28"),
            ("2024-02-29", "P1Y", "2025-02-28"),
            ("2026-05-07", "P-5M", "2025-12-07"),
            ("2026-05-07", "PT25H", "2026-05-08"),
            ("2026-05-07", "PT-25H", "2026-05-06"),
            ("2026-05-07", "PT23H", "2026-05-07"),
            ("2026-01-31", "P1M1D", "2026-03-01"),  # first the month, then the day
        ],
    )
    def test_a_date_moves_by_months_then_by_days(self, moment: str, duration: str, later: str) -> None:
        assert values.add(day(moment), lasting(duration)).text == later
        assert values.add(lasting(duration), day(moment)).text == later

    def test_an_instant_keeps_its_time_of_the_day_through_months(self) -> None:
        assert values.add(at("2024-01-31T12:30:00Z"), lasting("P1MT1H")).text == "2024-02-29T13:30:00.000Z"
        assert values.subtract(at("2026-05-07T16:30:00Z"), lasting("P30D")).text == "2026-04-07T16:30:00.000Z"
        assert values.subtract(at("1970-01-01T00:00:00Z"), lasting("PT0.001S")).text == "1969-12-31T23:59:59.999Z"

    def test_a_duration_is_scaled_and_its_fractions_go_down(self) -> None:
        assert values.multiply(lasting("P1M2DT3H"), 2).text == "P2M4DT6H"
        assert values.multiply(0.5, lasting("P1D")).text == "PT12H"
        assert values.divide(lasting("P1D"), 2).text == "PT12H"
        assert values.subtract(lasting("P1D"), lasting("PT1H")).text == "P1DT-1H"
        assert kind_of_fault(values.divide, Duration(days=1), 0) == "DivisionByZero"
        assert kind_of_fault(values.multiply, Duration(days=1), 1e300) == "NumberOutOfRange"
        assert kind_of_fault(values.multiply, Duration(days=1), float("nan")) == "NumberOutOfRange"

    def test_no_moment_moves_out_of_the_calendar(self) -> None:
        for by in ("P1D", "P1M", "P9999Y", "P99999999999D"):
            assert kind_of_fault(values.add, day("9999-12-31"), lasting(by)) == "NumberOutOfRange"
            assert kind_of_fault(values.subtract, at("0001-01-01T00:00:00Z"), lasting(by)) == "NumberOutOfRange"

    @pytest.mark.parametrize(
        ("start", "end", "length"),
        [
            ("1984-10-11", "2015-06-24", "P30Y8M13D"),
            ("2015-06-24", "1984-10-11", "P-30Y-8M-13D"),
            ("2026-01-31", "2026-02-28", "P28D"),
            ("2026-01-31", "2026-03-01", "P1M1D"),
            ("2026-01-01T23:00:00Z", "2026-02-01T01:00:00Z", "P30DT2H"),
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "PT0S"),
            ("2026-05-07T16:30:00.500Z", "2026-05-07T16:29:59Z", "PT-1.5S"),
        ],
    )
    def test_between_two_moments_lie_months_then_days_then_the_rest(self, start: str, end: str, length: str) -> None:
        assert temporal.between(at(start), at(end)).text == length
        assert temporal.between(start, end).text == length

    def test_between_what_is_no_moment_lies_nothing(self) -> None:
        for of in (temporal.between, temporal.in_months, temporal.in_days, temporal.in_seconds):
            assert kind_of_fault(of, Date(0), "tomorrow") == "InvalidArgumentType"
            assert kind_of_fault(of, 0, Date(0)) == "InvalidArgumentType"

    @fixed(300)
    @given(moments, moments)
    def test_the_start_and_what_lies_between_give_the_end(self, start: DateTime, end: DateTime) -> None:
        length = temporal.between(start, end)
        assert temporal.shift(start, length) == end
        assert len({part > 0 for part in (length.months, length.days, length.milliseconds) if part}) <= 1
        assert temporal.shift(start, temporal.in_seconds(start, end)) == end
        assert temporal.in_days(start, end) == temporal.negated(temporal.in_days(end, start))
        assert temporal.in_months(start, end).months == length.months


class TestComponents:
    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("year", 1984),
            ("quarter", 4),
            ("month", 10),
            ("week", 41),
            ("weekYear", 1984),
            ("day", 11),
            ("ordinalDay", 285),
            ("dayOfWeek", 4),
            ("weekDay", 4),
            ("dayOfQuarter", 11),
            ("hour", 12),
            ("minute", 31),
            ("second", 14),
            ("millisecond", 645),
            ("microsecond", 645_000),
            ("nanosecond", 645_000_000),
            ("epochMillis", 466_345_874_645),
            ("epochSeconds", 466_345_874),
            ("timezone", "Z"),
            ("offset", "Z"),
            ("offsetMinutes", 0),
            ("offsetSeconds", 0),
            ("YEAR", 1984),
        ],
    )
    def test_an_instant_has_the_components_of_its_day_and_of_its_clock(self, key: str, value: int | str) -> None:
        moment = at("1984-10-11T12:31:14.645Z")
        assert values.property_of(moment, key) == value
        if key in {"year", "quarter", "month", "week", "day", "ordinalDay", "dayOfWeek", "dayOfQuarter"}:
            assert values.property_of(day("1984-10-11"), key) == value

    def test_the_year_of_a_week_may_differ_from_the_year_of_its_day(self) -> None:
        assert [values.property_of(day("2015-12-31"), key) for key in ("year", "weekYear", "week")] == [2015, 2015, 53]
        assert [values.property_of(day("2014-12-29"), key) for key in ("year", "weekYear", "week")] == [2014, 2015, 1]

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("years", 1),
            ("quarters", 5),
            ("months", 16),
            ("weeks", 1),
            ("days", 10),
            ("hours", 1),
            ("minutes", 61),
            ("seconds", 3_661),
            ("milliseconds", 3_661_111),
            ("microseconds", 3_661_111_000),
            ("nanoseconds", 3_661_111_000_000),
            ("quartersOfYear", 1),
            ("monthsOfYear", 4),
            ("monthsOfQuarter", 1),
            ("daysOfWeek", 3),
            ("minutesOfHour", 1),
            ("secondsOfMinute", 1),
            ("millisecondsOfSecond", 111),
            ("microsecondsOfSecond", 111_000),
            ("nanosecondsOfSecond", 111_000_000),
        ],
    )
    def test_a_duration_has_its_parts_in_every_unit(self, key: str, value: int) -> None:
        assert values.property_of(lasting("P1Y4M10DT1H1M1.111S"), key) == value

    @pytest.mark.parametrize(
        ("value", "key"), [(Date(0), "hour"), (Date(0), "days"), (DateTime(0), "days"), (DateTime(0), "colour"), (Duration(), "year")]
    )
    def test_a_component_that_there_is_not_is_refused(self, value: Any, key: str) -> None:
        assert kind_of_fault(values.property_of, value, key) == "InvalidArgumentValue"


class TestTruncation:
    @pytest.mark.parametrize(
        ("unit", "first"),
        [
            ("millennium", "2000-01-01"),
            ("century", "2000-01-01"),
            ("decade", "2010-01-01"),
            ("year", "2017-01-01"),
            ("weekYear", "2017-01-02"),
            ("quarter", "2017-10-01"),
            ("month", "2017-11-01"),
            ("week", "2017-11-06"),
            ("day", "2017-11-11"),
            ("DAY", "2017-11-11"),
        ],
    )
    def test_the_first_day_of_the_unit(self, unit: str, first: str) -> None:
        made = temporal.truncate_date(unit, day("2017-11-11"), NOW)
        assert made == day(first)
        assert temporal.truncate_datetime(unit, at("2017-11-11T12:31:14.645Z"), NOW) == at(first)

    @pytest.mark.parametrize(
        ("unit", "first"),
        [("hour", "12:00:00.000"), ("minute", "12:31:00.000"), ("second", "12:31:14.000"), ("millisecond", "12:31:14.645")],
    )
    def test_the_first_millisecond_of_the_unit(self, unit: str, first: str) -> None:
        made = temporal.truncate_datetime(unit, "2017-11-11T12:31:14.645Z", NOW)
        assert made is not None
        assert made.text == f"2017-11-11T{first}Z"

    def test_a_unit_that_there_is_not_is_refused(self) -> None:
        assert kind_of_fault(temporal.truncate_date, "hour", Date(0), NOW) == "InvalidArgumentValue"
        assert kind_of_fault(temporal.truncate_date, 1, Date(0), NOW) == "InvalidArgumentValue"
        assert kind_of_fault(temporal.truncate_date, "millennium", day("0999-01-01"), NOW) == "InvalidArgumentValue"
        assert kind_of_fault(temporal.truncate_datetime, "fortnight", DateTime(0), NOW) == "InvalidArgumentValue"
        assert temporal.truncate_date("day", None, NOW) is None
        assert temporal.truncate_datetime(None, DateTime(0), NOW) is None
