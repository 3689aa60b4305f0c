"""Numbers of things, for people."""


def format_count(number: int, thing: str) -> str:
    """`1 image`, `2,000 images`; of things whose plural ends in s, or in es behind s and x."""
    plural = f"{thing}es" if thing.endswith(("s", "x")) else f"{thing}s"
    return f"{number:,} {thing if number == 1 else plural}"
