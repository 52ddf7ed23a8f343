"""How far back gradients reach, to earlier states and inputs."""
