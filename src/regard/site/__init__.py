"""A static site on which models run in the browser, without a server: `regard site`."""
