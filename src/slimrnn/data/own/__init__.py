"""Readers of files that users bring; `slimrnn.data.own_files` has their interface."""
