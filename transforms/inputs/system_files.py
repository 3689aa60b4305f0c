"""Names of files and folders that systems and tools create, and that are never images."""

import re

_NAMES = frozenset(
    (
        # macOS, and servers for it
        *(".ds_store", "__macosx", ".appledouble", ".trashes", ".fseventsd", ".spotlight-v100"),
        *(".temporaryitems", ".documentrevisions-v100", "icon\r"),
        *("network trash folder", "temporary items", "thevolumesettingsfolder"),
        # Windows
        *("thumbs.db", "ehthumbs.db", "ehthumbs_vista.db", "desktop.ini"),
        *("$recycle.bin", "system volume information"),
        # Synology, QNAP, NetApp
        *("@eadir", "@tmp", "#recycle", "#snapshot", "@recycle", "@recently-snapshot"),
        *(".@__thumb", ".@upload_cache", ".snapshot", "~snapshot"),
        # Linux
        *("lost+found", ".trash"),
        # Python
        *("__pycache__", ".ipynb_checkpoints", ".venv", "site-packages", "dist-packages"),
        # other tools for developers
        *("node_modules", "bower_components", ".git", ".hg", ".svn", ".idea", ".vscode", ".vs"),
    )
)
"""The names, in lower case, because most of these systems do not distinguish case."""

_NUMBERED = re.compile(r"\.trash-[0-9]+|\.nfs[0-9a-f]{12,}|found\.[0-9]{3}|thumbs\.db:.*")
"""Names that have a number or a stream after them, in lower case."""

_FIRST_LETTERS = frozenset(
    letter for name in (*_NAMES, "found") for letter in (name[0], name[0].upper())
)


def is_system_name(name: str) -> bool:
    """Returns whether a file or folder of this name was created by a system or a tool."""
    # This is called for each listed file, and the first letter decides most of the time.
    if name[:1] not in _FIRST_LETTERS:
        return False
    lower = name.lower()
    if lower in _NAMES:
        return True
    return lower.startswith((".", "found.", "thumbs.")) and bool(_NUMBERED.fullmatch(lower))
