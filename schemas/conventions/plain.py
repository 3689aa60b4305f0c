"""plain: no features of its own; an Example has those of its source, and those of `features:`."""

from recordmill.schemas.conventions.convention import Convention

CONVENTION = Convention(title="features of the source alone", features=())
