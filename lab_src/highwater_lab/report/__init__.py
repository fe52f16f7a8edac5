"""Reports of rehearsals: for the terminal, for machines, as a page and as a picture."""
