"""The build of the layers: the right part of a lock, wheels for the functions' system, and no more bytes than Lambda takes."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from infra.deploy.layers import FUNCTION_LAYERS, MAX_UNZIPPED_BYTES, Target, check_sizes, locked, pack, prune, size_of, this_machine

LOCK = """\
# This file was made by a tool.
boto3==1.44.8 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via -r requirements/functions.in
numpy==2.4.6 ; python_full_version < '3.12' \\
    --hash=sha256:cc
numpy==2.5.5 ; python_full_version >= '3.12' \\
    --hash=sha256:dd
typing-extensions==4.16.0 \\
    --hash=sha256:ee
"""


def test_a_part_of_a_lock_keeps_versions_markers_and_hashes() -> None:
    assert locked(LOCK, {"numpy"}.__contains__) == (
        "numpy==2.4.6 ; python_full_version < '3.12' \\\n    --hash=sha256:cc\n"
        "numpy==2.5.5 ; python_full_version >= '3.12' \\\n    --hash=sha256:dd\n"
    )
    assert locked(LOCK, {"boto3"}.__contains__).splitlines()[-1] == "    --hash=sha256:bb"


def test_every_package_of_a_lock_is_in_one_part_of_two() -> None:
    both = locked(LOCK, {"numpy"}.__contains__) + locked(LOCK, lambda name: name != "numpy")
    assert sorted(both.splitlines()) == sorted(line for line in LOCK.splitlines() if not line.lstrip().startswith("#"))


def test_python_3_11_on_lambda_gets_no_wheel_that_its_older_system_can_t_load() -> None:
    platforms = Target("arm64").platforms("3.11")
    assert "manylinux_2_26_aarch64" in platforms
    assert "manylinux_2_27_aarch64" not in platforms
    assert "manylinux_2_28_x86_64" in Target("x86_64").platforms("3.12")


def test_the_local_emulator_gets_wheels_of_this_machine() -> None:
    assert any("_28_" in name for name in this_machine().platforms("3.11"))


def test_what_no_function_uses_is_left_out(tmp_path: Path) -> None:
    kept = ["botocore/data/dynamodb/service-2.json.gz", "numpy/core.py", "x/testing/a.py"]
    dropped = ["botocore/data/ec2/service-2.json.gz", "numpy/tests/test_a.py", "numpy/core.pyi", "x/__pycache__/a.pyc", "bin/tool"]
    for name in (*kept, *dropped):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    prune(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == sorted(kept)


def test_of_aws_s_endpoints_those_stay_that_are_called(tmp_path: Path) -> None:
    file = tmp_path / "botocore" / "data" / "endpoints.json"
    file.parent.mkdir(parents=True)
    partition = {"partition": "aws", "regions": {"us-east-1": {}}, "services": {"dynamodb": {"endpoints": {}}, "ec2": {"endpoints": {}}}}
    file.write_text(json.dumps({"version": 3, "partitions": [partition]}))
    prune(tmp_path)
    (left,) = json.loads(file.read_text())["partitions"]
    assert left == {**partition, "services": {"dynamodb": {"endpoints": {}}}}


def test_a_layer_of_the_same_files_is_packed_to_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        for path in ("python/b.py", "python/a.py"):
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(path)
            os.utime(tmp_path / name / path, (1_600_000_000, 1_600_000_000))
        pack(tmp_path / name, tmp_path / f"{name}.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    assert zipfile.ZipFile(tmp_path / "one.zip").namelist() == ["python/a.py", "python/b.py"]


def test_a_function_that_would_not_fit_stops_the_build() -> None:
    sizes = dict.fromkeys({layer for layers in FUNCTION_LAYERS.values() for layer in layers}, 1)
    check_sizes(sizes)
    with pytest.raises(SystemExit, match="embed"):
        check_sizes({**sizes, "model": MAX_UNZIPPED_BYTES})


def test_a_size_is_that_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"123")
    (tmp_path / "c").write_bytes(b"4")
    assert size_of(tmp_path) == 4
