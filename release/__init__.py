"""What a release is made of and checked by: `make release-check`. Nothing of it is shipped."""
