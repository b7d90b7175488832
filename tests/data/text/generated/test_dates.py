import datetime

import pytest
from babel import dates as cldr

import errors
from data.text.generated import dates

DAY = datetime.date(2021, 3, 3)


def said(source, target, links):
    return [(target[slice(*link.target)], source[slice(*link.source)]) for link in links]


def test_english_to_hungarian_is_reordered():
    source, target, links = dates.alignment("en", "hu", DAY)
    assert source == "Wednesday, March 3, 2021"
    assert target == "2021. március 3., szerda"
    assert links == [
        ((0, 4), (20, 24)),
        ((6, 13), (11, 16)),
        ((14, 15), (17, 18)),
        ((18, 24), (0, 9)),
    ]


def test_fields_are_told_apart_where_they_look_the_same():
    source, target, links = dates.alignment("en", "zh", DAY)
    assert target == "2021年3月3日星期三"
    assert said(source, target, links) == [
        ("2021", "2021"),
        ("3", "March"),
        ("3", "3"),
        ("星期三", "Wednesday"),
    ]


@pytest.mark.parametrize("locale", ["en", "de", "fr", "es", "hu", "zh", "ja", "ar", "lt", "vi", "pt_BR"])
def test_as_babel_writes_it(locale):
    for date in (DAY, datetime.date(1999, 12, 31)):
        assert dates.write(date, locale) == cldr.format_date(date, "full", locale)
        assert len(dates.alignment(locale, "en", date)[2]) == 4


def test_no_date_is_in_two_splits():
    first, second = dates.splits(0), dates.splits(1)
    assert (first.validation, first.test) == (second.validation, second.test)
    assert first.train != second.train
    for drawn in (first, second):
        together = [*drawn.train, *drawn.validation, *drawn.test]
        assert len(drawn.train) == 4_000
        assert len(drawn.validation) == len(drawn.test) == 500
        assert len(set(together)) == 5_000
        assert dates.FIRST <= min(together) < max(together) <= dates.LAST


def test_an_unknown_locale(one_line):
    for locale in ("xx", "", "en de"):
        with pytest.raises(errors.UserError) as raised:
            dates.write(DAY, locale)
        one_line(raised, repr(locale), "de, fr, hu")
