"""Custom resources of deploys: floors of open windows, high-water marks, and what is left behind by a deletion."""
