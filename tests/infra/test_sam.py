"""The template as AWS's own tools see it. They are in .local/sam, which `make functions-setup` makes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from infra.deploy.emulator import SAM
from tests.infra.template import ROOT, folder_of, functions
from tests.support.deployment import need_lambda

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _installed() -> None:
    need_lambda()


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    variables = {**kept, "HOME": str(cwd), "AWS_DEFAULT_REGION": "us-east-1", "SAM_CLI_TELEMETRY": "0"}
    return subprocess.run(
        [str(SAM / "bin" / command[0]), *command[1:]], cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )


def test_the_linter_finds_nothing() -> None:
    ran = run("cfn-lint", "--format", "json", "template.yaml")
    assert json.loads(ran.stdout or "[]") == [], ran.stderr
    assert ran.returncode == 0


def test_sam_takes_the_template(tmp_path: Path) -> None:
    shutil.copy(ROOT / "template.yaml", tmp_path)
    ran = run("sam", "validate", "--lint", "--template", "template.yaml", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "is a valid SAM Template" in ran.stdout


def test_sam_builds_every_function_without_a_container_engine(tmp_path: Path) -> None:
    shutil.copy(ROOT / "template.yaml", tmp_path)
    shutil.copytree(ROOT / "functions", tmp_path / "functions", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "build" / "layers").mkdir(parents=True)
    for name in ("core", "edge", "dependencies", "model"):
        (tmp_path / "build" / "layers" / f"{name}.zip").write_bytes(b"")
    ran = run("sam", "build", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    made = {path.name for path in (tmp_path / ".aws-sam" / "build").iterdir() if path.is_dir()}
    assert made == {name for name, properties in functions().items() if "CodeUri" in properties}
    for name, properties in functions().items():
        if name in made:
            handler = (tmp_path / ".aws-sam" / "build" / name / "handler.py").read_text(encoding="utf-8")
            assert handler.startswith(f'"""{folder_of(properties)}: ')
