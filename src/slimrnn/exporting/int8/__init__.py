"""int8 inference: weights in int8, products in integers, and the same bits in every implementation."""
