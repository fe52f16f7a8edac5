"""Reports of rehearsals: text for the terminal, a JSON document, an HTML page and a PNG."""
