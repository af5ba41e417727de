"""Checks of an answer by code, bundled or the user's."""
