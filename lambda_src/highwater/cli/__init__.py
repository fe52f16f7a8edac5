"""The `highwater` command; never part of a Lambda asset. Its libraries come with the extra `[cli]`."""
