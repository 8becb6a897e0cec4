"""Who acts on the store, and what that person's role allows. Checked where rows are written, not only on pages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import AtlasError

ROLES = ("none", "viewer", "annotator", "admin")  # each may do what those before it may
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,190}")  # no colon: see `name_of`
_SUBJECT = re.compile(r"[\x21-\x7e]{1,190}")  # OIDC: ASCII, compared with case


class RightsError(AtlasError):
    """Something was asked for that the person's role does not allow."""


@dataclass(frozen=True)
class Person:
    """Who acts. name: as labels carry it; "" where nobody signed in. role: what they may do.

    viewer: look at everything stored. annotator: also label under their own name, and train classifiers on labels.
    admin: also start other jobs, change classes, choose classifiers, import, and delete. none: nothing.
    """

    name: str = ""
    role: str = "admin"

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise RightsError(
                f"A role is one of {', '.join(ROLES)}; {str(self.role)[:40]!r} is none: correct it in "
                "the [roles] of secrets.toml or in ATLAS_VISITORS."
            )

    def may(self, role: str) -> bool:
        """Whether this person's role is `role` or a higher one."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def must(self, role: str, doing: str) -> None:
        """RightsError unless this person `may(role)`; doing: what was asked for, as "change classes"."""
        if not self.may(role):
            who = f"{self.name} has" if self.name else "visitors here have"
            raise RightsError(
                f"To {doing} one must be {role}, but {who} the role {self.role}; ask an admin of this app for the role."
            )

    def signs(self, annotator: str) -> None:
        """RightsError unless this person may label as `annotator`: under one's own name; admins under any."""
        self.must("annotator", "label")
        if self.name and self.role != "admin" and person_name(annotator) != person_name(self.name):
            raise RightsError(
                f"Labels carry the name of the one who is signed in, {self.name}, but {annotator[:60]!r} was given; "
                "label under your own name."
            )


OWNER = Person()  # whoever opens the file itself: a terminal, a worker, the app for its own bookkeeping


def name_of(claims: Mapping[str, Any], *, by_subject: bool = True) -> str:
    """The name under which somebody signed in is known: the e-mail address, else `sub:` and the `sub`.

    An address counts only where the provider does not say that it is unverified; only letters of ASCII are compared
    without case, so that no other letter folds into one of them. A `sub` can never spell an address.

    Args:
        by_subject: whether a `sub` names somebody; False with several providers, because each has its own.

    Returns:
        The name; "" for nobody.
    """
    if "email_verified" in claims and claims["email_verified"] not in (True, "true"):
        return ""
    if type(claims.get("email_verified", True)) not in (bool, str):  # 1 == True
        return ""
    address = claims.get("email")
    if address not in (None, ""):
        return address.lower() if isinstance(address, str) and _ADDRESS.fullmatch(address) else ""
    subject = claims.get("sub")
    is_subject = by_subject and isinstance(subject, str) and _SUBJECT.fullmatch(subject)
    return f"sub:{subject}" if is_subject else ""


def role_of(name: str, roles: Mapping[str, object]) -> str:
    """The role of a signed-in person, by the configuration.

    The highest role that lists the name counts, "none" among them; addresses compare without case, a `sub:` exactly.

    Args:
        name: as `name_of` gives it.
        roles: lists of names by role, and the role of everybody else as "default".

    Returns:
        One of ROLES; "none" where nothing lists the name and there is no default.

    Raises:
        RightsError: `roles` is not of this form, so that a slip never gives more than was meant.
    """
    listed = []
    for role, names in roles.items():
        if role == "default":
            continue
        if role not in ROLES or not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
            raise RightsError(
                f"The [roles] of secrets.toml give lists of names for {', '.join(ROLES[1:])}, but {role[:40]!r} is not "
                "such a list; correct it and start the app again."
            )
        if name and person_name(name) in {person_name(entry) for entry in names}:
            listed.append(role)
    highest = max(listed, key=ROLES.index) if listed else str(roles.get("default", "none"))
    return Person(role=highest).role


def person_name(name: str) -> str:
    """A name as labels carry it and as names compare: an e-mail address without case and without space around it;
    anything else as it is written."""
    stripped = name.strip()
    return stripped.lower() if _ADDRESS.fullmatch(stripped) else name
