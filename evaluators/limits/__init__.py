"""How fast a run may ask: what the user allows, what a server announces, what it turns out to bear.

Everything here is plain state that is told the time; only ``admission`` waits.
"""
