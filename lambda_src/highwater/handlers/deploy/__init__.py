"""Custom resources of deploys: floors of open windows, high-water marks, and capacity left behind by a deletion."""
