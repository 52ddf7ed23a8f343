"""The nets that tasks train: recurrent or highway layers between an input and a read-out."""
