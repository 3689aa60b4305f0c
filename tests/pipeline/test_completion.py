"""`recordmill completion`: the shells themselves complete commands, flags, values and folders."""

import shutil
import subprocess

import pytest

from recordmill.pipeline.command import run_command
from recordmill.pipeline.completion import READERS, SHELLS, write_completion
from recordmill.pipeline.run import build


@pytest.fixture
def shell(tmp_path):
    """Runs a program of a shell next to the script `completion`, in a folder with a folder."""

    def run(name, program):
        if not shutil.which(name):
            pytest.skip(f"{name} is not installed")
        (tmp_path / "completion").write_text(write_completion(name), encoding="utf-8")
        (tmp_path / "photos").mkdir(exist_ok=True)
        (tmp_path / "phases.yaml").touch()
        words = {"zsh": ["zsh", "-f", "-c"]}.get(name, [name, "-c"])
        done = subprocess.run(
            [*words, program], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        return set(done.stdout.split())

    return run


COMPLETED = [
    ("recordmill ver", {"verify", "versions"}),
    ("recordmill run --summ", {"--summary-json"}),
    ("recordmill run --writer ", {"beam", "recordmill"}),
    ("recordmill verify --level p", {"pixels"}),
    ("recordmill versions --r", {"--rollback"}),
    ("recordmill completion ", {*SHELLS}),
]


@pytest.mark.parametrize(("line", "words"), COMPLETED)
def test_bash_completes(shell, line, words):
    program = (
        f"source completion; COMP_LINE={line!r}; COMP_POINT={len(line)}; COMP_WORDS=({line}); "
        + ("COMP_WORDS+=(''); " if line.endswith(" ") else "")
        + "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _shtab_recordmill; echo ${COMPREPLY[@]}"
    )
    assert shell("bash", program) == words


def test_bash_completes_folders_for_the_input_and_files_for_a_configuration(shell):
    start = "source completion; COMP_CWORD=3; "
    folders = "COMP_WORDS=(recordmill run --input ph); _shtab_recordmill; echo ${COMPREPLY[@]}"
    assert shell("bash", start + folders) == {"photos"}
    files = "COMP_WORDS=(recordmill run -c ph); _shtab_recordmill; echo ${COMPREPLY[@]}"
    assert shell("bash", start + files) == {"photos", "phases.yaml"}
    inputs = "COMP_WORDS=(recordmill run ph); _shtab_recordmill; echo ${COMPREPLY[@]}"
    assert shell("bash", f"source completion; COMP_CWORD=2; {inputs}") == {"photos"}


@pytest.mark.parametrize(("line", "words"), COMPLETED)
def test_fish_completes(shell, line, words):
    found = shell("fish", f"source completion; complete -C {line!r} | string replace -r '\\t.*' ''")
    assert words <= found
    assert all(each.startswith(line.rpartition(" ")[2]) for each in found)


def test_zsh_loads_the_script_and_knows_the_command(shell):
    program = (
        "zsh -n completion; mv completion _recordmill; fpath=($PWD $fpath); autoload -Uz compinit; "
        "compinit -u -D; print ${_comps[recordmill]}; autoload +X _recordmill; whence _recordmill"
    )
    assert shell("zsh", program) == {"_recordmill"}


def test_the_command_prints_what_a_shell_reads(capsys):
    for name in SHELLS:
        assert run_command(["completion", name], build) == 0
        assert capsys.readouterr().out == write_completion(name)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "the following arguments are required: SHELL: see --help"),
        (["tcsh"], "argument SHELL: invalid choice: 'tcsh' (choose from "),
        (["bash", "--zzz"], "there is no flag --zzz: see --help"),
    ],
)
def test_wrong_usage_is_one_sentence(words, problem, capsys):
    assert run_command(["completion", *words], build) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith(f"error: {problem}")


def test_every_command_is_completed():
    script = write_completion("bash")
    assert f"_shtab_recordmill_subparsers=(run {' '.join(READERS)} completion)" in script
