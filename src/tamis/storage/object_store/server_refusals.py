"""Recognizes the refusals of a server that the user can remedy: expired credentials and a wrong region."""

from __future__ import annotations

import re

from tamis.errors import StoreUnavailable

_CODE = re.compile(r"<Code>(\w+)</Code>")
_EXPECTED = re.compile(r"expecting '([\w-]+)'")
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}
_ELSEWHERE = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}


def server_refusal(text: str, name: str) -> StoreUnavailable | None:
    """Return the error for the answer ``text`` about the object ``name``; None if it is neither of these refusals.

    ``CREDENTIALS_EXPIRED``: the credentials were valid once. ``WRONG_REGION``: the bucket is in another region.
    """
    said = _CODE.search(text)
    code = said[1] if said else ""
    if code in _EXPIRED:
        return StoreUnavailable(
            f"The credentials for {name} have expired.",
            code="CREDENTIALS_EXPIRED",
            name=name,
            remedy=(
                "Open the table again, or attach a catalog of another name, with new ones. What was committed is safe."
            ),
        )
    if code in _ELSEWHERE or "incorrectly configured region" in text:
        expected = _EXPECTED.search(text)
        return StoreUnavailable(
            f"The bucket of {name} is in another region than the one that was asked.",
            code="WRONG_REGION",
            name=name,
            remedy=f"Set region in storage_options to {expected[1] if expected else 'that of the bucket'}.",
        )
    return None
