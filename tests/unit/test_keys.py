"""API keys: their form, and what is kept of them."""

from __future__ import annotations

import hashlib

import pytest

from pulse_kg.adapters.system import RandomIds
from pulse_kg.domain.keys import ApiKey, parse_key

PUBLIC, SECRET = "abcdefg2", "a2" * 26
KEY = f"pk_{PUBLIC}_{SECRET}"


def test_a_key_is_read_as_it_is_written() -> None:
    key = parse_key(KEY)
    assert key == ApiKey(PUBLIC, SECRET)
    assert key is not None
    assert key.text == KEY


def test_a_key_made_at_random_has_the_form() -> None:
    key = ApiKey(*RandomIds().key_parts())
    assert parse_key(key.text) == key


def test_two_random_keys_differ_in_both_parts() -> None:
    first, second = (ApiKey(*RandomIds().key_parts()) for _ in range(2))
    assert first.public_id != second.public_id
    assert first.secret != second.secret


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pk_",
        SECRET,
        KEY.upper(),
        KEY + "\n",
        " " + KEY,
        KEY + "a",
        KEY[:-1],
        KEY.replace("pk_", "sk_"),
        f"pk_abcdefg1_{SECRET}",
        f"pk_{PUBLIC}-{SECRET}",
        f"pk_{PUBLIC}_{SECRET[:-1]}=",
        f"Bearer {KEY}",
        f"pk_{PUBLIC}_{'ａ' * 52}",
    ],
)
def test_what_has_not_the_form_is_no_key(text: str) -> None:
    assert parse_key(text) is None


def test_only_the_hash_of_the_secret_is_kept() -> None:
    key = ApiKey(PUBLIC, SECRET)
    assert key.secret_sha256 == hashlib.sha256(SECRET.encode()).hexdigest()


def test_a_key_opens_its_own_hash_and_no_other() -> None:
    key, other = ApiKey(PUBLIC, SECRET), ApiKey(PUBLIC, "b" * 52)
    assert key.opens(key.secret_sha256)
    assert not key.opens(other.secret_sha256)
    assert not key.opens("")


def test_the_secret_is_in_no_repr() -> None:
    assert SECRET not in repr(ApiKey(PUBLIC, SECRET))
