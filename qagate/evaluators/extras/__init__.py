"""Rooms: what a run needs only when it is asked for. The trunk reaches them by ``doors.py``."""
