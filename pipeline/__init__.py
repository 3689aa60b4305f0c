"""The launcher's side: configuration, flags, the terminal, and the chain of steps."""

import logging

# Beam's own warning on its import where its extra for Google's services is missing, which no command here needs.
_NEEDLESS = "apitools not found, and bigquery client libraries"

logging.getLogger().addFilter(lambda record: not str(record.msg).startswith(_NEEDLESS))
