"""The Content-Security-Policy of the self-contained pages: forms and reports alike."""

import base64
import hashlib

from markupsafe import Markup


def content_policy(script: str, style: str) -> Markup:
    """Return a policy that lets in these two texts, by hash, and nothing else from anywhere."""
    return Markup(  # base64 and fixed words
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
