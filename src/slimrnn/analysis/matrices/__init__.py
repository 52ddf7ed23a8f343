"""Recurrent matrices by themselves, without data: eigenvalues, singular values, norms of powers."""
