"""The memory doctor: all measures of all layers, what follows from them, and reports as text, HTML and figures."""
