"""Side-by-side measurements of Recordmill; benchmarks/README.md says how to run and read them."""
