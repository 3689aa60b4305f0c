"""`recordmill view PATH`: shows the images of a dataset on a local page."""

import argparse
import sys
import threading
import webbrowser
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from recordmill.pipeline.command import reader_parser, run_reader
from recordmill.pipeline.terminal import make_console
from recordmill.schemas.errors import UsageError
from recordmill.viewing.marks import choose_files, find_obstacle
from recordmill.viewing.server import HOST, ViewServer
from recordmill.viewing.source_folders import SourceFolders
from recordmill.viewing.viewed_dataset import open_viewed
from recordmill.viewing.viewer import Viewer

EPILOG = "exit codes: 0 stopped by Ctrl-C   1 it cannot be opened   2 wrong usage"

_MOST_PORT = 65_535


def main(argv: Sequence[str] | None = None, prog: str = "python -m pipeline.view") -> int:
    """Shows a dataset until Ctrl-C.

    Args:
        argv: the flags; by default, those of the process.
        prog: what the user typed before them.

    Returns:
        The exit code.
    """
    description = (
        "Shows the images of a dataset, of the unfinished work of a failed run, or of any TFRecord "
        "files, on a page that only this machine can open."
    )
    parser = reader_parser(prog, description, "a folder, a file or a pattern", EPILOG)
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address, and open no browser"
    )
    parser.add_argument(
        "--port", type=int, default=0, metavar="PORT", help="where to listen (default: any free)"
    )
    for name, what in (("exclude", "to leave out"), ("corrections", "that get other classes")):
        help_text = (
            f"the list of images {what} that marks are added to (default: the dataset's own)"
        )
        parser.add_argument(f"--{name}", metavar="FILE", help=help_text)
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="DIR",
        help="show the sources of images, which are below this folder; repeatable",
    )
    return run_reader(parser, argv, _view)


def _open(flags: argparse.Namespace) -> Viewer:
    """Opens what is shown, with the files for marks if its images can be marked."""
    viewed, sources = open_viewed(flags.path), SourceFolders(tuple(flags.source))
    if problem := find_obstacle(viewed.dataset):
        if flags.exclude or flags.corrections:
            raise UsageError(f"--exclude and --corrections have no effect: {problem}")
        return Viewer(viewed, None, problem, sources)
    files = choose_files(viewed.dataset, viewed.title, flags.exclude, flags.corrections)
    return Viewer(viewed, files, None, sources)


def _view(flags: argparse.Namespace) -> dict[str, Any]:
    if flags.quiet:
        raise UsageError("--quiet would hide the address of the page: leave it out")
    if not 0 <= flags.port <= _MOST_PORT:
        raise UsageError(f"--port is {flags.port}: give a number from 0 to {_MOST_PORT}")
    viewer = _open(flags)
    try:
        server = ViewServer(viewer, flags.port)
    except OSError as error:
        raise UsageError(
            f"--port {flags.port} of {HOST} cannot be used: {error.strerror}; leave it out for a "
            "free one"
        ) from None
    viewer.start()
    console = make_console(soft_wrap=True)
    console.print(Text(f"the page is {server.address}"))
    console.print(Text("press Ctrl-C to stop", style="dim"))
    answering = threading.Thread(target=server.serve_forever, daemon=True)
    answering.start()
    try:
        if not flags.no_browser:
            webbrowser.open(server.address)  # one in the terminal returns when it is left
        answering.join()
    except KeyboardInterrupt:
        server.shutdown()
    finally:
        server.server_close()
        viewer.viewed.close()
    return {"path": viewer.viewed.dataset.folder, "status": "stopped"}


if __name__ == "__main__":
    sys.exit(main())
