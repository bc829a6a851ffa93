"""Storage options of S3 from the keys ``fs.s3a.*`` of the session's Hadoop configuration.

Options that are given explicitly have priority, in groups: whoever gives a credential gives all of them, and
whoever gives an endpoint says how to reach it. Below both comes the environment, which the store's client reads.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any

from tamis.errors import InvalidInput
from tamis.spark.jvm_bridge.adapter import Bridge
from tamis.storage.object_store import Store, open_store
from tamis.storage.object_store.location import locate_store
from tamis.storage.object_store.storage_options import canonical_option

CREDENTIALS = {
    "access_key_id",
    "secret_access_key",
    "session_token",
    "skip_signature",
    "role_arn",
    "web_identity_token_file",
    "container_credentials_relative_uri",
    "container_credentials_full_uri",
}
"""Options that decide who asks."""
ADDRESS = {"endpoint", "virtual_hosted_style_request", "allow_http"}
"""Options that decide which server is asked."""
KEYS = {
    "access.key": "`access_key_id`",
    "secret.key": "`secret_access_key`",
    "session.token": "`session_token`",
    "endpoint": "`endpoint`; addresses of AWS itself only give the region",
    "endpoint.region": "`region`",
    "path.style.access": "`virtual_hosted_style_request`, the other way round; for `endpoint` only",
    "connection.ssl.enabled": "`http://` or `https://` for an `endpoint` without either",
    "aws.credentials.provider": "`skip_signature` for the anonymous provider",
}
"""The keys that are read, below ``fs.s3a.`` and ``fs.s3a.bucket.<bucket>.``, and what they mean."""
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_PROVIDERS = {
    "SimpleAWSCredentialsProvider",
    "TemporaryAWSCredentialsProvider",
    "EnvironmentVariableCredentialsProvider",
    "IAMInstanceCredentialsProvider",
    "InstanceProfileCredentialsProvider",
    "ContainerCredentialsProvider",
    "EC2ContainerCredentialsProviderWrapper",
    "WebIdentityTokenCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider",
    "DefaultCredentialsProvider",
    "DefaultAWSCredentialsProviderChain",
    "AnonymousCredentialsProvider",
    _ANONYMOUS,
}
"""Providers whose credentials Tamis finds in the same places: options, environment, metadata service."""
_AWS = re.compile(r"(?:https?://)?s3(?:[.-]([a-z0-9-]+))?\.amazonaws\.com(?:\.cn)?/?", re.IGNORECASE)

Get = Callable[[str], str | None]


def session_store(owner: Bridge, session: Any, place: Any, given: Mapping[str, Any] | None = None) -> Store:
    """Return the store at ``place``, with the storage options ``given`` and those of the session's Hadoop keys.

    Raises ``InvalidInput``.
    """
    given = given or {}
    location = locate_store(place)
    if location.scheme != "s3":
        return open_store(place, given)
    conf = session._jsparkSession.sessionState().newHadoopConf()
    return open_store(place, {**hadoop_options(lambda key: _set(owner, conf, key), location.bucket, given), **given})


def hadoop_options(get: Get, bucket: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the storage options that ``get``, a look-up of Hadoop keys, adds to those that are ``given``.

    Raises ``InvalidInput`` (``BAD_OPTION``) for a provider of credentials that Tamis does not have.
    """

    def found(key: str) -> str | None:
        text = get(f"fs.s3a.bucket.{bucket}.{key}") or get(f"fs.s3a.{key}")
        return text.strip() if text and text.strip() else None

    names = {canonical_option(str(name)) for name in given}
    options: dict[str, Any] = {} if names & CREDENTIALS else _credentials(found)
    endpoint = found("endpoint")
    region = found("endpoint.region")
    aws = _AWS.fullmatch(endpoint) if endpoint else None
    if endpoint and not aws and "endpoint" not in names:
        options |= {key: value for key, value in _address(found, endpoint, bucket).items() if key not in names}
    region = region or (aws[1] if aws else None)
    if region and "region" not in names:
        options["region"] = region
    return options


def _credentials(found: Get) -> dict[str, Any]:
    names = [name.strip() for name in (found("aws.credentials.provider") or "").split(",") if name.strip()]
    providers = [name.rpartition(".")[2] for name in names]
    unknown = next((name for name, short in zip(names, providers, strict=True) if short not in _PROVIDERS), None)
    if unknown is not None:
        raise InvalidInput(
            f"The credentials provider {unknown} is not supported.",
            code="BAD_OPTION",
            name="fs.s3a.aws.credentials.provider",
            remedy="Give storage options, such as access_key_id and secret_access_key; "
            "skip_signature=false takes credentials from the environment or the metadata service.",
        )
    if providers and set(providers) <= {_ANONYMOUS, "AnonymousCredentialsProvider"}:
        return {"skip_signature": True}
    keys = {"access_key_id": "access.key", "secret_access_key": "secret.key", "session_token": "session.token"}
    return {option: value for option, key in keys.items() if (value := found(key)) is not None}


def _address(found: Get, endpoint: str, bucket: str) -> dict[str, Any]:
    """The options that reach ``endpoint`` as S3A does: by default, the bucket is in the host's name."""
    if "://" not in endpoint:
        endpoint = f"{'http' if _is(found('connection.ssl.enabled'), False) else 'https'}://{endpoint}"
    scheme, _, host = endpoint.rstrip("/").partition("://")
    options: dict[str, Any] = {"allow_http": True} if scheme.lower() == "http" else {}
    if _is(found("path.style.access"), True) or not _holds_buckets(host, bucket):
        return {**options, "endpoint": f"{scheme}://{host}", "virtual_hosted_style_request": False}
    return {**options, "endpoint": f"{scheme}://{bucket}.{host}", "virtual_hosted_style_request": True}


def _holds_buckets(host: str, bucket: str) -> bool:
    """Whether ``bucket`` can be the first part of a name below ``host``."""
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return "." in name and re.fullmatch(r"[a-z0-9][a-z0-9-]*[a-z0-9]", bucket) is not None
    return False


def _is(text: str | None, wanted: bool) -> bool:
    return text is not None and text.lower() == str(wanted).lower()


def _set(owner: Bridge, conf: Any, key: str) -> str | None:
    """The value of a Hadoop key that somebody has set, also as ``spark.hadoop.`` in the session.

    None for a default of Hadoop's.
    """
    text = conf.get(key)
    sources = None if text is None else conf.getPropertySources(key)
    if text is None or (sources is not None and owner.texts(sources)[-1:] == ("core-default.xml",)):
        text = conf.get(f"spark.hadoop.{key}")
    return None if text is None else str(text)
