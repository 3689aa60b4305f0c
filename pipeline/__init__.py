"""The commands and the launcher: configuration, flags, the terminal, and the chain of steps."""

import logging

# Beam warns when it is imported without its extra for Google's services, which no command here
# needs.
_NEEDLESS = "apitools not found, and bigquery client libraries"

logging.getLogger().addFilter(lambda record: not str(record.msg).startswith(_NEEDLESS))
