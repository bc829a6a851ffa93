"""The names of storage options, and what hides their values.

The values are credentials and addresses: no error, plan, report or ``repr`` may show them. The names are those of
``obstore``, which decides in the end which ones a store takes. They are the same wherever storage options are given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

RETRIES = {
    "max_retries": "How often a failed request is repeated.",
    "retry_timeout": "The total time of all tries of a request, in seconds.",
}
"""Options of Tamis itself."""
CLIENT = {
    "allow_http": "Whether `http://` is allowed.",
    "allow_invalid_certificates": "Whether certificates are not checked. For tests only.",
    "connect_timeout": "The time to connect, such as `5s`.",
    "pool_idle_timeout": "How long an idle connection is kept.",
    "pool_max_idle_per_host": "How many idle connections are kept.",
    "proxy_ca_certificate": "The certificate of the proxy.",
    "proxy_excludes": "Hosts that are reached without the proxy.",
    "proxy_url": "The proxy.",
    "timeout": "The time of one try of a request, such as `30s`.",
    "user_agent": "The name that the client gives itself.",
}
S3 = {
    "access_key_id": "The access key.",
    "checksum_algorithm": "The checksum of uploads.",
    "conditional_put": "How an object is written only if it is absent. Tamis needs the default, `etag`.",
    "container_authorization_token_file": "A token for credentials of a container.",
    "container_credentials_full_uri": "Where a container gets credentials.",
    "container_credentials_relative_uri": "Where a container gets credentials.",
    "default_region": "The region if `region` is not set.",
    "disable_bulk_delete": "Whether objects are deleted one by one.",
    "disable_tagging": "Whether tags are left out.",
    "endpoint": "The address of a store other than AWS.",
    "endpoint_url_sts": "The address of the token service.",
    "imdsv1_fallback": "Whether the metadata service may be asked without a token.",
    "metadata_endpoint": "The address of the metadata service.",
    "region": "The region of the bucket.",
    "request_payer": "Whether the requester pays.",
    "role_arn": "The role to assume by a web identity.",
    "role_session_name": "The name of that session.",
    "secret_access_key": "The secret of the access key.",
    "server_side_encryption": "The kind of encryption at rest.",
    "session_token": "The token of temporary credentials.",
    "skip_signature": "Whether requests are not signed, for public buckets.",
    "sse_bucket_key_enabled": "Whether the bucket's key encrypts.",
    "sse_kms_key_id": "The key that encrypts.",
    "unsigned_payload": "Whether the content of uploads is not signed.",
    "virtual_hosted_style_request": "Whether `endpoint` holds the bucket's name.",
    "web_identity_token_file": "The token of a web identity.",
}
GCS = {
    "application_credentials": "A file of credentials.",
    "base_url": "The address of a store other than Google's.",
    "bearer_token": "A token.",
    "service_account": "The file of a service account.",
    "service_account_key": "The key of a service account, as JSON.",
    "skip_signature": "Whether requests are not signed, for public buckets.",
}
AZURE = {
    "account_key": "The key of the account.",
    "account_name": "The account, if the URL does not name it.",
    "authority_host": "Where tokens are requested.",
    "client_id": "The client of a service principal.",
    "client_secret": "Its secret.",
    "credential_type": "Which kind of credentials to use.",
    "disable_tagging": "Whether tags are left out.",
    "encryption_key": "A key of the customer that encrypts.",
    "endpoint": "The address of a store other than Azure.",
    "fabric_cluster_identifier": "A setting of Microsoft Fabric.",
    "fabric_session_token": "A setting of Microsoft Fabric.",
    "fabric_token_service_url": "A setting of Microsoft Fabric.",
    "fabric_workload_host": "A setting of Microsoft Fabric.",
    "federated_token_file": "The token of a workload identity.",
    "msi_endpoint": "Where tokens of a managed identity are requested.",
    "msi_resource_id": "A managed identity, by its resource.",
    "object_id": "A managed identity, by its object.",
    "sas_key": "A shared access signature.",
    "skip_signature": "Whether requests are not signed, for public containers.",
    "tenant_id": "The tenant of a service principal.",
    "token": "A bearer token.",
    "use_azure_cli": "Whether the Azure CLI is asked for tokens.",
    "use_emulator": "Whether to use Azurite.",
    "use_fabric_endpoint": "Whether to use the endpoint of Microsoft Fabric.",
}
BY_SCHEME = {"s3": S3, "gs": GCS, "az": AZURE}
PREFIXES = ("aws_", "google_", "azure_storage_", "azure_")
"""Prefixes that a store's own option names may have, as in the environment: ``AWS_ACCESS_KEY_ID``."""
_ALIASES = {"endpoint_url": "endpoint", "token": "session_token"}
"""Other names of the options of S3."""
NAMES = tuple(sorted({*RETRIES, *CLIENT, *S3, *GCS, *AZURE}))

SOURCE = "source."
"""Prefix of the options for the store of a foreign table, whose files are parts: ``source.region``."""

REDACTED = f"(?i)^(source[.])?(({'|'.join(p.rstrip('_') for p in PREFIXES)})_.*|{'|'.join((*NAMES, *_ALIASES))})$"
"""A pattern, for Python and Java, of the names of storage options."""
_REDACTED = re.compile(REDACTED)
_URL = re.compile(r"\bhttps?://[^\s)\"'<>,]+", re.IGNORECASE)
_KEY_IN_ANSWER = re.compile(r"(<AWSAccessKeyId>)[^<]*", re.IGNORECASE)
_SHORTEST = 4
"""Values of fewer characters are no secrets, and are parts of ordinary words."""


def is_storage_option(name: str) -> bool:
    """Return whether an option of this name is for the object store."""
    return _REDACTED.match(name) is not None


def own_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are for the table's own store."""
    return {key: value for key, value in options.items() if not str(key).lower().startswith(SOURCE)}


def source_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are for the store of a source, without their prefix."""
    return {str(key)[len(SOURCE) :]: value for key, value in options.items() if str(key).lower().startswith(SOURCE)}


def canonical_option(name: str) -> str:
    """Return the name of an option of S3 without its prefix, in lower case."""
    plain = name.lower().removeprefix("aws_")
    return _ALIASES.get(plain, plain)


def redact_values(text: str, options: Mapping[str, Any]) -> str:
    """Replace addresses and the values of ``options`` in a store's message."""
    text = _KEY_IN_ANSWER.sub(r"\1…", _URL.sub("…", text))
    values = {str(value): key for key, value in options.items() if not isinstance(value, bool | int | float)}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST and value.lower() not in {"true", "false"}:
            text = text.replace(value, f"<{values[value]}>")
    return text
