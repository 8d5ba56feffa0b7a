"""Packages with the API of other libraries, on top of onx."""
