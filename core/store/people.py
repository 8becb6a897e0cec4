"""Users and their roles. Rights are checked where rows are written, not only on pages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import AtlasError

ROLES = ("none", "viewer", "annotator", "admin")  # each role includes the rights of those before it
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,190}")  # no colon: see `name_of`
_SUBJECT = re.compile(r"[\x21-\x7e]{1,190}")  # OIDC: ASCII, compared with case


class RightsError(AtlasError):
    """Exception that is raised if the role of a person does not allow an action."""


@dataclass(frozen=True)
class Person:
    """The current user, with a role and an annotator name. The name is "" if the user has not signed in.

    Roles: a viewer reads everything stored; an annotator also labels under their own name and trains classifiers; an
    admin also starts other jobs, changes classes, selects classifiers, imports and deletes; "none" has no rights.
    """

    name: str = ""
    role: str = "admin"

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise RightsError(
                f"A role must be one of {', '.join(ROLES)}; got {str(self.role)[:40]!r}. Correct it in [roles] of "
                "secrets.toml or in ATLAS_VISITORS."
            )

    def may(self, role: str) -> bool:
        """Return whether this user has at least the rights of a role."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def must(self, role: str, doing: str) -> None:
        """Raise RightsError unless this user has at least the rights of a role. `doing` names the action in the
        message, such as "change classes"."""
        if not self.may(role):
            who = f"{self.name} has" if self.name else "visitors have"
            raise RightsError(
                f"The role {role} is required to {doing}; {who} the role {self.role}. Ask an admin of this "
                "app for the role."
            )

    def signs(self, annotator: str) -> None:
        """Raise RightsError if this user may not store labels under the name `annotator`. Signed-in users who are
        not admins may only use their own name."""
        self.must("annotator", "label")
        if self.name and self.role != "admin" and person_name(annotator) != person_name(self.name):
            raise RightsError(
                f"Labels must have the name of the signed-in user, {self.name}; got {annotator[:60]!r}. Label "
                "under your own name."
            )


OWNER = Person()  # anyone who opens the file itself: a terminal, a worker, or the app


def name_of(claims: Mapping[str, Any], *, by_subject: bool = True) -> str:
    """Return the annotator name of a signed-in user, based on the user's OpenID claims. The name is the e-mail address
    or, if there is none, an ID. Return "" if neither is usable.

    An unverified address gives "". Only ASCII letters are compared without case, and a `sub` can never look like an
    address. `by_subject` is False with several providers, because each has its own subjects.
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
    """Return the highest role that `roles` assigns to a user name. If no role is assigned, return the default role or,
    without a default, "none".

    Addresses (from `name_of`) are compared without case, `sub:` names exactly. `roles` has lists of names by role, and
    "default". Raises RightsError if it has another form, so that a mistake never grants rights.
    """
    listed = []
    for role, names in roles.items():
        if role == "default":
            continue
        if role not in ROLES or not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
            raise RightsError(
                f"Every entry of [roles] in secrets.toml must be a role ({', '.join(ROLES[1:])}) with a list of names; "
                f"the entry {role[:40]!r} is not. Correct this entry, and restart the app."
            )
        if name and person_name(name) in {person_name(entry) for entry in names}:
            listed.append(role)
    highest = max(listed, key=ROLES.index) if listed else str(roles.get("default", "none"))
    return Person(role=highest).role


def person_name(name: str) -> str:
    """Normalise an annotator name. E-mail addresses are stripped of outer spaces and converted to lower case; other
    names are not changed."""
    stripped = name.strip()
    return stripped.lower() if _ADDRESS.fullmatch(stripped) else name
