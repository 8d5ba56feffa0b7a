"""Packages under the names that scripts know, on top of onx."""
