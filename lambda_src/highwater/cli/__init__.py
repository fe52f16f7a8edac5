"""The `highwater` command. Lambda assets do not contain it; the extra `[cli]` installs its libraries."""
