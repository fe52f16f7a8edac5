"""Tables with declared capacity: what a plan becomes in the template."""
