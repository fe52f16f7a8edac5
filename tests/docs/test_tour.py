"""The tour shows what its command makes now, and says in words what each picture shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.tour import DOCS, PAGE, REQUEST, ROOT, SURGE, WINDOW, write_tour


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    assert write_tour(folder) == [PAGE, WINDOW, SURGE, REQUEST]
    return folder


@pytest.mark.parametrize("name", [PAGE, WINDOW, SURGE, REQUEST])
def test_page_and_pictures_are_those_that_the_command_makes_byte_by_byte(made: Path, name: str) -> None:
    assert (DOCS / name).read_bytes() == (made / name).read_bytes(), "make benchmark NAME=tour"


@pytest.mark.parametrize("name", [WINDOW, SURGE, REQUEST])
def test_picture_has_no_date_and_a_light_ground_of_its_own(made: Path, name: str) -> None:
    picture = (made / name).read_text()
    assert "<dc:date>" not in picture
    assert picture.index("fill: #ffffff") < picture.index("fill: #b6d4f5"), "the ground is below all that is drawn"


def test_each_picture_is_described_where_it_stands(made: Path) -> None:
    shown = dict(re.findall(r"^!\[([^\]]+)\]\(([^)]+)\)$", (made / PAGE).read_text(), re.MULTILINE))
    assert list(shown.values()) == [WINDOW, SURGE, REQUEST]
    window, surge, request = shown
    assert "rises from 50 to 1,000 write units a second at 04:55" in window
    assert "Auto scaling alone, at 70 %: 11.39 % throttled, for 25 minutes" in surge
    assert "a boost two minutes before: nothing throttled" in surge
    assert re.search(r"Before: \d+ USD a month, \d\.\d\d % throttled", request)
    assert re.search(r"After: \d+ USD a month, 0 % throttled", request)


def test_readme_has_the_picture_of_the_window_with_the_same_words() -> None:
    (line,) = [each for each in (DOCS / PAGE).read_text().splitlines() if each.endswith(f"]({WINDOW})")]
    readme = (ROOT / "README.md").read_text()
    assert f"\n[{line.replace(WINDOW, f'docs/{WINDOW}')}](docs/tour.md)\n" in readme
    assert readme.count("](docs/pictures/") == 1


def test_readme_is_one_screen() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 80
