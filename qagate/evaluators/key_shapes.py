"""What keys, tokens and passwords look like: the patterns of ``mask``.

There are two kinds. A key may begin as only keys do (``sk-``, ``AKIA``, ``-----BEGIN``). Or it
stands behind a name that says what it is (``password=``, ``"client_secret":``); then the name
decides, and whether the value could be a word: an answer may well say "password: none" or
"Key: Bulgaria".

Every pattern is linear in the text, which anybody may have written: a run of characters is
entered once, or its repeats are bounded.
"""

import re

_CHARS = r"[A-Za-z0-9._~+/=-]"
# A bearer bond is no key: ask for letters among digits, a mixed case, or sheer length.
_RANDOM = (
    rf"(?={_CHARS}{{0,60}}?(?:[A-Z]{{2}}[a-z]|[a-z][A-Z]|[a-z]\d|\d[a-z]|[\w-]{{24}}))"
)
# Nor is sk-learning: a key is long or has digits, an echoed one asterisks as well.
_BODY = r"(?=[\w-]{20}|[A-Za-z_-]{0,60}[\d*])[\w*-]{8,}"

_QUERY = ("key", "token", "secret", "password", "sig", "signature")
"""Ends of the names of a URL's parameters."""
_TOKENS = ("gho", "ghp", "ghr", "ghs", "ghu", "gsk", "hf")
_UNDERSCORED = (
    *("dop_v1", "fw", "jina", "lin_api", "lsv2", "ntn", "pcsk", "phc", "phx", "r8", "shpat"),
    *("tgp_v1", "sntrys", "dckr_pat", "figd", "secret"),
)  # fmt: skip
"""Prefixes before an underscore and a key of at least 16 characters."""
_HYPHENATED = (
    *("csk", "glagent", "glcbt", "gldt", "glft", "glpat", "glptt", "glrt", "glsoat"),
    *("gocspx", "pa", "pypi", "tvly", "voyage", "xapp", "ghv"),
)  # fmt: skip
"""Prefixes before a hyphen and a key of at least 16 characters."""
_LONG_BODY = r"(?=[\w-]{0,60}?\d)(?=[\w-]{0,12}?\w{16})[\w-]{16,}"
"""A key: 16 characters and more without a hyphen, which no words are, and a digit."""

_QUOTE = r"\\{0,3}[\"']"
"""A quote, perhaps in JSON that stands in JSON."""
_SEPARATOR = rf"(?:{_QUOTE})?\s{{0,3}}(?:=>|[:=])\s{{0,3}}(?:{_QUOTE})?"
_PASSWORD_NAMES = r"(?:password|passwd|passphrase|pgpass|\bpwd|_pwd|mysql_pwd)"
_SECRET_NAMES = (
    r"(?:(?:client|app|api|shared|webhook|signing|jwt|session|consumer|oauth)[_-]?secret"
    r"|secret[_-]?(?:access[_-]?)?key|\bsecret|_secret)"
)
_KEY_NAMES = (
    r"(?:(?:account|access|shared|private|encryption|signing|subscription|master|license|auth"
    r"|service|storage|function|host|deploy|admin|write|read|project|application)[_-]?key"
    r"|_key|(?:access|auth|refresh|id|session|security|bot|api|deploy|user|personal)[_-]?token"
    r"|[_-]token|\btoken|credentials?|signature|session[_-]?id)"
)
_NO_BLANK = r"[^\s\"'<>,;&]"
# Behind the name of a password anything in code or settings is one; in prose only what no
# word is: a digit or a sign among letters.
_NO_WORD = rf"(?={_NO_BLANK}{{0,60}}?(?:\d|[!@#$%^*+/=_~]|[a-z][A-Z]))"
_PASSWORD = (
    rf"(?:(?:{_QUOTE})?=(?:{_QUOTE})?{_NO_BLANK}{{4,}}"
    rf"|{_QUOTE}\s{{0,3}}(?:=>|[:=])\s{{0,3}}{_QUOTE}[^\"'\n]{{4,}}"
    rf"|{_SEPARATOR}{_NO_WORD}{_NO_BLANK}{{6,}})"
)
_KEY_CHARS = r"[\w+/=.~%|-]"
_KEY_VALUE = (
    rf"(?={_KEY_CHARS}{{0,60}}?\d)(?={_KEY_CHARS}{{0,60}}?[A-Za-z]){_KEY_CHARS}{{12,}}"
)

_PEM_BODY = r"(?:[^-]++|-(?!----))*+"
_PEM_LINES = r"(?:(?:\s|\\[nr]){0,9}[A-Za-z0-9+/=]{16,}){1,500}"

KEYS = (
    # A user, or a user and a password, in a URL; a password may hold slashes.
    ("://", r"(?<=://)[^/?#\s\"]{1,4000}(?=@)"),
    (
        "://",
        r"(?<=://)[^/?#\s\"'@:]{0,200}:(?!\d{1,5}[/?#])(?:(?!://)[^\s\"'<>@])++"
        r"(?:@(?:(?!://)[^\s\"'<>@])++(?=@))*+(?=@)",
    ),
    ("sk-", rf"(?<![A-Za-z])sk-{_BODY}"),
    ("sk-", r"sk-(?:ant|live|or|proj|svcacct|test)-[\w-]{16,}"),  # even glued to a word
    *(
        (f"{prefix}-", rf"\b{prefix}-{_BODY}")
        for prefix in ("rk", "pk", "xai", "pplx", "nvapi")
    ),
    *(
        (f"{name}_", rf"(?<![^\W_]){name}_\w{{12,}}")
        for name in (*_TOKENS, "github_pat")
    ),
    *((f"{name}_", rf"\b{name}_{_BODY}") for name in (*_TOKENS, "sk", "rk", "pk")),
    *((f"{name}_", rf"\b{name}_{_LONG_BODY}") for name in _UNDERSCORED),
    *((f"{name}-", rf"\b(?i:{name})-{_LONG_BODY}") for name in _HYPHENATED),
    ("glpat-", r"glpat-[\w-]{12,}"),
    ("xox", r"xox[abeprs]-[\w-]{10,}"),
    ("hooks.", r"hooks\.slack\.com/services/[\w/]{12,}"),
    ("akia", r"AKIA[A-Z0-9]{12,}"),
    ("asia", r"\bASIA[A-Z0-9]{12,}"),
    ("absk", r"\bABSK[A-Za-z0-9+/=]{20,}"),
    ("dapi", r"\bdapi[0-9a-f]{24,}"),
    ("atatt", r"\bATATT[\w=-]{20,}"),
    ("ya29.", r"\bya29\.[\w-]{16,}"),
    ("aq.", rf"\bAQ\.{_LONG_BODY}"),
    ("1//0", r"\b1//0[\w-]{20,}"),
    ("npm_", r"\bnpm_\w{30,}"),
    ("sg.", r"\bSG\.[\w-]{16,}+\.[\w-]{16,}"),
    ("hvs.", r"\bhvs\.[\w-]{16,}"),
    ("aiza", r"AIza[\w-]{20,}"),
    ("eyj", r"(?<![\w-])eyJ[\w-]{10,}+\.[\w-]{10,}+(?:\.[\w-]*+)?"),
    ("bearer", rf"(?i:bearer)\s{{1,9}}{_RANDOM}{_CHARS}{{6,}}"),
    (
        "authorization",
        rf"(?i:authorization){_SEPARATOR}\w{{1,9}}\s{{1,9}}[^\s\"'<>]{{4,}}",
    ),
    ("cookie", rf"(?i:cookie){_SEPARATOR}[\w.-]{{1,60}}=[^\s\"'<>]{{6,}}"),
    ("api", rf"(?i:api[_-]?key){_SEPARATOR}[^\s\"'<>,;]{{8,}}"),
    *(
        (f"{name}=", rf"[?&](?i:[\w-]{{0,20}}{name})=[^\s\"'<>&#]{{4,}}")
        for name in _QUERY
    ),
    *(
        (f"{name}=", rf"[?&]{name}=(?=[\w%./-]{{0,60}}\d)[\w%./-]{{12,}}")
        for name in ("code", "auth")
    ),
    ("pass", rf"(?i:{_PASSWORD_NAMES}){_PASSWORD}"),
    ("pwd", rf"(?i:{_PASSWORD_NAMES}){_PASSWORD}"),
    ("secret", rf"(?i:{_SECRET_NAMES}){_SEPARATOR}{_NO_WORD}{_NO_BLANK}{{8,}}"),
    *(
        (sign, rf"(?i:{_KEY_NAMES}){_SEPARATOR}{_KEY_VALUE}")
        for sign in ("key", "token", "credential", "signature", "session")
    ),
    (
        "private key",
        rf"-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?:{_PEM_BODY}-----END [A-Z0-9 ]{{0,60}}-----|{_PEM_LINES}[A-Za-z0-9+/=]*+)",
    ),
)  # fmt: skip
"""What the lower-case text must hold for a pattern to be tried at all, and the pattern."""

PATTERNS = tuple((sign, re.compile(pattern, re.ASCII)) for sign, pattern in KEYS)
