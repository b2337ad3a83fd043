"""A defect in a service's log: where it is, and nothing of what a client sent."""

from __future__ import annotations

from controller.adapters.http_service import places


def test_a_defect_is_logged_by_place_and_kind_without_its_words() -> None:
    try:
        int("sk-a-secret")
    except ValueError as error:
        logged = places((type(error), error, error.__traceback__))
    assert logged[-1] == "ValueError"
    assert logged[0].endswith("test_a_defect_is_logged_by_place_and_kind_without_its_words")
    assert "sk-a-secret" not in "".join(logged)
