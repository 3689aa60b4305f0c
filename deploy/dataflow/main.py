from pipeline.run import main  # a flex template's launcher wants a file; it starts the job when this process has exited

main()
