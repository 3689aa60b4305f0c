"""Large images wait for one another, whatever thread or process converts them."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image

from recordmill.imaging import ImageSettings, large_images, prepare_image
from recordmill.imaging.large_images import LARGE_BYTES, lock_path, take_turn

LARGE = LARGE_BYTES + 1


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(large_images.tempfile, "tempdir", str(tmp_path))


def hold(tmp_path, then="sys.stdin.read()"):
    """Another process that has its turn."""
    code = (
        "import sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from recordmill.imaging.large_images import take_turn\n"
        f"with take_turn({LARGE}):\n    print('mine', flush=True)\n    {then}"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "mine\n"
    return process


def start_waiting():
    """A thread that waits for its turn; the event is set when it has it."""
    has_turn = threading.Event()

    def wait():
        with take_turn(LARGE):
            has_turn.set()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, has_turn


def test_small_images_do_not_wait_and_leave_no_file():
    with take_turn(LARGE), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: take_turn(LARGE_BYTES).__enter__()).result() is None
    assert not os.path.exists(lock_path())


def test_threads_take_turns():
    inside, most, lock = 0, 0, threading.Lock()

    def work(_):
        nonlocal inside, most
        with take_turn(LARGE):
            with lock:
                inside += 1
                most = max(most, inside)
            with lock:
                inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(200)))
    assert most == 1
    assert not os.path.exists(lock_path())


def test_processes_take_turns(tmp_path):
    other = hold(tmp_path)
    thread, has_turn = start_waiting()
    assert not has_turn.wait(0.3)
    other.communicate("")
    assert has_turn.wait(60)
    thread.join()
    assert other.returncode == 0


def test_a_killed_process_does_not_hold_up_others(tmp_path):
    other = hold(tmp_path)
    other.send_signal(signal.SIGKILL)
    other.communicate()
    assert os.path.exists(lock_path())
    with take_turn(LARGE):
        pass
    assert not os.path.exists(lock_path())


def test_a_stopped_process_does_not_hold_others_up_for_good(tmp_path, monkeypatch):
    monkeypatch.setattr(large_images, "MOST_SECONDS", 0.2)
    other = hold(tmp_path)
    other.send_signal(signal.SIGSTOP)
    try:
        with take_turn(LARGE):
            pass
    finally:
        other.send_signal(signal.SIGCONT)
        other.communicate("")
    assert other.returncode == 0


def test_the_same_thread_may_take_its_turn_again():
    with take_turn(LARGE), take_turn(LARGE):
        pass
    with take_turn(LARGE):
        pass


def test_a_forked_process_does_not_wait_for_threads_that_it_does_not_have():
    with take_turn(LARGE):
        child = os.fork()
        if not child:
            is_free = large_images._TURNS.lock.acquire(timeout=1)
            os._exit(0 if is_free else 1)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("obstacle", ["no folder", "a folder", "a link", "not writable"])
def test_without_a_lock_file_images_are_converted_all_the_same(tmp_path, monkeypatch, obstacle):
    if obstacle == "no folder":
        monkeypatch.setattr(large_images.tempfile, "tempdir", str(tmp_path / "absent"))
    elif obstacle == "a folder":
        os.mkdir(lock_path())
    elif obstacle == "a link":
        (tmp_path / "victim").write_text("precious")
        os.symlink(tmp_path / "victim", lock_path())
    else:
        monkeypatch.setattr(os, "open", lambda *_, **__: (_ for _ in ()).throw(PermissionError()))
    with take_turn(LARGE):
        pass
    if obstacle == "a link":
        assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "CMYK"])
def test_an_image_is_the_same_with_and_without_a_turn(save, monkeypatch, mode):
    taken = []
    turn = large_images._turn

    def note():
        taken.append(mode)
        return turn()

    monkeypatch.setattr(large_images, "_turn", note)
    image = Image.linear_gradient("L").convert(mode)
    kinds = ("JPEG", "TIFF") if mode == "CMYK" else ("PNG", "TIFF")
    for kind in kinds:
        data = save(image, kind)
        plain = prepare_image(data, ImageSettings())
        monkeypatch.setattr(large_images, "LARGE_BYTES", 1_000)
        assert prepare_image(data, ImageSettings()) == plain
        monkeypatch.setattr(large_images, "LARGE_BYTES", LARGE_BYTES)
    assert len(taken) == len(kinds)
