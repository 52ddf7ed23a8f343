"""What a layer remembers on data: what its gates do, how much of the past its state holds, and for how long."""
