# A flex template's launcher wants a file; it starts the job when this process has exited.
from recordmill.pipeline.run import main

main()
