"""Rehearsals as comments on pull requests of GitHub and merge requests of GitLab."""
