"""`python -m recordmill` does what the command `recordmill` does, with the Python that you name."""

from recordmill.pipeline.run import main

if __name__ == "__main__":
    main("python -m recordmill")
