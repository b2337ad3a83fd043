"""The command line: parse, call, render, exit. One module per verb; results on stdout, progress on stderr."""
