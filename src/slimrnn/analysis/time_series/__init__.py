"""Dependence over time in any series, such as the states of a layer; processes with known answers to try it on."""
