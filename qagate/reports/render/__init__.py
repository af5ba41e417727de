"""From a Report to the text of its files; a module for each format, the table of them in files."""
