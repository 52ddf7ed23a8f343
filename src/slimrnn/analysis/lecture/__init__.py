"""The lecture's equations, written as they stand there, to learn from and to compare with."""
