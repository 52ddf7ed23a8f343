"""The recurrent layers of a model: where they are, what they read, which states they go through, what they cost."""
