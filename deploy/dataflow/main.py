# The launcher of a flex template needs a file. It starts the job when this process has exited.
from recordmill.pipeline.run import main

main()
