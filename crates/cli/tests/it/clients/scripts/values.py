"""Values of all types go to a server and come back as they went."""

import math
import re
import sys
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from clients.odd import (
    Client,
    Day,
    Empty,
    ExactDate,
    ExactTime,
    Flag,
    Grade,
    Literal_,
    MingleError,
    Number,
    Option,
    Pair,
    Point,
    Result,
    Session_,
    Some,
    String,
    User,
    UserFields,
)

client = Client(sys.argv[1])
epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)

bare = Option(None, [], None)
full = Option("é\U0001f600\n\"", [bare, bare], bare)
points = [Point(1.5, -0.25), Point(math.inf, 3)]
assert client.echo(full, points, Some(None)) == full
assert client.echo(full, points) == bare

text = String(
    type_=-(2**63),
    move_to=True,
    bytes_=bytes(range(256)) * 300,
    list_=[[], [None, 2**53, 2**53 + 1]],
    datetime_=datetime(2026, 11, 22, 10, 20, 30, 456_000, tzinfo=timezone.utc),
    of=Result(b"\x00\xff"),
    constructor=Some(Some(b"")),
    _proto__=1,
    _init__=2,
)
assert client.string_of(text) == text
for nested in (None, Some(None), Some(5)):
    assert client.nested(nested) == nested
assert client.list_([[1, 2], []]) == [[1, 2], []]
assert client.show_() == [1, None]
assert client.constructor(None, 3) == 3
assert client.class_(1, 2, 3) == 6
client.nothing(Empty())
for half in (0.1, math.inf, -math.inf, 5e-324):
    assert client.half(Number(2**60), half * 2) == half
assert math.isnan(client.half(Number(1), math.nan))
assert client.flip(Flag(False)) == Flag(True)

# Values of an enum are their labels.
ratings: list[Literal_] = ["a", "NC-17", "new", "\"'\\*/\u2028\u202e\n${x}", "A", "none"]
for rating in ratings:
    grade = Grade(rating)
    assert client.rate(grade, rating, ratings) == [*ratings, rating]
    graded = client.show(grade)
    assert graded is not None and graded.rating == graded.rated == rating
    assert graded.by_rating == {rating: "client"}


def refused(kind: type[Exception], call: Any, *values: Any) -> None:
    """What cannot be sent exactly is refused before anything is sent."""
    try:
        call(*values)
    except kind as error:
        assert not isinstance(error, MingleError), error
    else:
        raise AssertionError(f"{values} were sent")


wrong: Any
for wrong in (1.5, 2.0, math.nan, True, "7", None, b"7", Decimal(7)):
    refused(TypeError, client.class_, wrong, 0, 0)
    refused(TypeError, client.half, Number(wrong), 1.0)
    refused(TypeError, client.list_, [[wrong]])
for far_off in (2**63, -(2**63) - 1, 2**64):
    refused(ValueError, client.class_, far_off, 0, 0)
    refused(ValueError, client.later, Day(ExactTime.at(far_off)), 0)
assert client.class_(2**63 - 1, 0, 0) == 2**63 - 1
assert client.class_(-(2**63), 0, 0) == -(2**63)
for exact in (0, 3, 2**53, -(2**60)):
    assert client.half(Number(1), exact) == exact / 2
assert math.copysign(1, client.half(Number(1), -0.0)) == -1
refused(ValueError, client.half, Number(1), 2**53 + 1)
refused(ValueError, client.half, Number(1), 10**400)
for wrong in (True, "1.5", None, b"1"):
    refused(TypeError, client.half, Number(1), wrong)
refused(ValueError, client.later, Day(datetime(2026, 1, 1)), 1)
for wrong in (1, "2026-01-01T00:00:00Z", epoch.date(), None):
    refused(TypeError, client.later, Day(wrong), 1)
for wrong in ("b", "nc_17", "", 1, None):
    refused(TypeError, client.rate, Grade("a"), wrong, [])
for wrong in (1, None, b"a", True):
    refused(TypeError, client.show, User(wrong))
for wrong in (1, "true", None):
    refused(TypeError, client.flip, Flag(wrong))
for wrong in ("text", [1], 1, None):
    refused(TypeError, client.show, Result(wrong))
refused(TypeError, client.list_, "text")


def refusal(call: Any, *values: Any) -> str:
    """Returns the message of a refusal."""
    try:
        call(*values)
    except (TypeError, ValueError) as error:
        return str(error)
    raise AssertionError(f"{values} were sent")


assert refusal(client.list_, [[1], ["7"]]).endswith(": [1]: [0]: expected an int, found str 7")
for wrong in ("tea", None, 1, User("ana")):
    message = refusal(client.half, wrong, 1.0)
    assert re.fullmatch(r"\w+: expected a Number, found (str|NoneType|int|User) .*", message), message

millisecond = timedelta(milliseconds=1)
for ms in (1, -1, 253_402_300_799_999, -62_135_596_800_000):
    moment = epoch + ms * millisecond
    assert client.later(Day(epoch), ms) == moment
    assert client.later(Day(moment), 0) == moment
    shown_day = client.show(Day(moment))
    assert shown_day is not None and shown_day.start == moment
for us in (1, -1, 999_999, -62_135_596_800_000_000, 253_402_300_799_999_999):
    moment = epoch + us * timedelta(microseconds=1)
    assert client.later(Day(moment), 0) == moment
    assert client.later(Day(moment), 1 if us < 0 else -1) == moment + (1 if us < 0 else -1) * millisecond
    client.points(Day(moment), points)
    shown_day = client.show(Day(moment))
    assert shown_day is not None and shown_day.start == moment
elsewhere = timezone(timedelta(hours=-3))
there = datetime(2026, 1, 1, tzinfo=elsewhere)
assert client.later(Day(there), 1) == there + millisecond
for ms in (253_402_300_800_000, -62_135_596_800_001, -62_167_219_200_001, 2**63 - 1, -(2**63)):
    far = client.later(Day(epoch), ms)
    us = max(-(2**63), min(2**63 - 1, 1000 * ms))
    assert isinstance(far, ExactTime) and far.epoch_microseconds == us and far == ExactTime.at(us), far
    assert client.later(Day(far), 0) == far
    shown_day = client.show(Day(far))
    assert shown_day is not None and shown_day.at == far
assert isinstance(client.later(Day(datetime.max.replace(tzinfo=elsewhere)), 0), ExactTime)

day = Day(epoch)
client.points(day, points)
shown_day = client.show(day)
assert shown_day is not None and shown_day.points == points
person = User("ana")
session = Session_(text.of)
client.keep(session, text, person, epoch + 7 * millisecond)
shown = client.show(session)
assert shown is not None
assert shown.by_ref == {text.of: text}
assert shown.by_name == {"a": text.type_}
assert shown.by_number == {text.type_: "b"}
assert list(shown.by_bool) == [True] and math.isnan(shown.by_bool[True])
assert shown.by_time == {epoch + 7 * millisecond: True}
assert shown.by_bytes == {text.bytes_: [1, 2]}
assert shown.by_struct == {Pair(1, person): None}
assert shown.by_list == [([1], 2)]
assert shown.by_float == [(1.5, 2)]
assert (shown.all, shown.to_string, shown.count) == ([person], [text], 3)
few = client.show(session, limit=0)
assert few is not None and few.all == []
grown = client.show(person)
assert grown is not None and grown.größe == 3
assert client.show(User("nobody")) is None
assert client.show(UserFields(Pair(1, person))) is None
for name in ("", ".", "..", "a/b", "a?b#c%20", '"', '"a"', "é\U0001f600 +&", "null", "5"):
    client.keep(session, text, User(name), epoch)
    odd = client.show(User(name))
    assert odd is not None and odd.name == name, name
client.close()

for of_year in (date.min, date(1969, 12, 31), date(2000, 2, 28), date(2026, 12, 31), date.max - timedelta(1)):
    assert client.next_day(of_year) == of_year + timedelta(1)
    assert client.next_day(of_year, 0) == of_year
far_day = client.next_day(date.max)
assert isinstance(far_day, ExactDate) and far_day.text == "+10000-01-01", far_day
assert client.next_day(far_day, -1) == date.max
assert client.next_day(date.min, -1) == ExactDate.at("0000-12-31")
for end in ("-5877641-06-23", "+5881580-07-11", "-0001-02-28", "0000-02-29"):
    assert client.next_day(ExactDate.at(end), 0) == ExactDate.at(end)
for wrong in ("2026-01-31", 1, None, datetime(2026, 1, 31)):
    refused(TypeError, client.next_day, wrong)
for wrong in ("-0001-02-29", "2026-01-31", "+0001-01-01", "+10000-13-01", "x"):
    refused(ValueError, client.next_day, ExactDate.at(wrong))

nines = Decimal("9" * 38)
for one, other, whole in (
    (Decimal("19.90"), Decimal("0.1"), "20.00"),
    (Decimal("1E+2"), Decimal("-0.5"), "99.5"),
    (nines, Decimal(0), "9" * 38),
    (Decimal("1E-38"), Decimal("-1E-38"), "0." + "0" * 38),
):
    assert str(format(client.sum(one, other), "f")) == whole
for wrong in (Decimal("NaN"), Decimal("Infinity"), Decimal("1E+38"), Decimal("1E-39"), Decimal("1E+999999")):
    refused(ValueError, client.sum, wrong, Decimal(0))
for wrong in ("1.5", 1, 1.5, None, True):
    refused(TypeError, client.sum, wrong, Decimal(0))

big = Decimal("12345678901234567890.1")
documents: list[tuple[Any, Any]] = [
    (None, None),
    ({"b": [1.5, -0.0, 1e3, 5e-324, 2**64], "a": "<é\"\n>"}, {"a": "<é\"\n>", "b": [1.5, 0, 1000, 5e-324, 2**64]}),
    ({"": big, "x": [True, Decimal("1E+3")]}, {"": big, "x": [True, 1000]}),
    ((1, "2"), [1, "2"]),
    ({"some": None}, {"some": None}),
]
papers = Session_(Result(b"documents"))
for given, canonical in documents:
    for maybe in (None, Some(given)):
        found = client.documents(papers, given, maybe, [given, given])
        assert found.json_ == canonical and repr(found.json_) == repr(canonical), found.json_
        assert found.maybe == (None if maybe is None else Some(canonical)), found.maybe
        assert found.all == [canonical, canonical]
        kept = client.show(papers)
        assert kept is not None
        assert (kept.document, kept.maybe, kept.documents["a"]) == (canonical, found.maybe, canonical)
for wrong in (math.nan, [math.inf], Decimal("NaN"), Decimal("1E+9999")):
    refused(ValueError, client.documents, papers, wrong, None, [])
for wrong in (b"x", {1: 2}, [object()], {"a": {2}}):
    refused(TypeError, client.documents, papers, wrong, None, [])
for wrong in ("\0", "\ud800", Decimal("1E+400")):
    try:
        client.documents(papers, wrong, None, [])
    except MingleError as error:
        assert error.code == "invalid-argument", error
    else:
        raise AssertionError(f"{wrong!r} was taken")
