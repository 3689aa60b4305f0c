"""Sources say what a listed file means: how many images it contains and how they are labeled.

There is one file per source.

A source is a module of this package that defines `SOURCE`: a frozen dataclass that implements
`Source`, with its YAML keys under `source:` as fields. Its file name is the name that users write
(`kind: class_folders`). It is registered nowhere else.
"""
