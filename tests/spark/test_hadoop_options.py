"""Storage options from ``fs.s3a.*``: what each key means, and that explicit options win."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.errors import InvalidInput
from tamis.spark.jvm_bridge.adapter import bridge_of
from tamis.spark.options.hadoop_options import _set as is_set
from tamis.spark.options.hadoop_options import hadoop_options

KEYS = {"access.key": "a", "secret.key": "s", "session.token": "t"}
SIGNED = {"access_key_id": "a", "secret_access_key": "s", "session_token": "t"}
HERE = {"endpoint": "127.0.0.1:9000", "connection.ssl.enabled": "false"}
LOCAL = {"endpoint": "http://127.0.0.1:9000", "allow_http": True, "virtual_hosted_style_request": False}
PATH = "virtual_hosted_style_request"


def options(keys: dict[str, str], given: dict[str, Any] | None = None, bucket: str = "lake") -> dict[str, Any]:
    return hadoop_options({f"fs.s3a.{key}": value for key, value in keys.items()}.get, bucket, given or {})


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({}, {}),
        (KEYS, SIGNED),
        ({"access.key": " ", "secret.key": ""}, {}),
        ({"endpoint.region": "eu-west-1"}, {"region": "eu-west-1"}),
        (HERE, LOCAL),
        ({"endpoint": "http://127.0.0.1:9000/"}, LOCAL),
        ({"endpoint": "minio", "path.style.access": "true"}, {"endpoint": "https://minio", PATH: False}),
        ({"endpoint": "minio.corp:9000"}, {"endpoint": "https://lake.minio.corp:9000", PATH: True}),
        ({"endpoint": "[::1]:9000"}, {"endpoint": "https://[::1]:9000", PATH: False}),
        ({"endpoint": "localhost:9000"}, {"endpoint": "https://localhost:9000", PATH: False}),
        ({"endpoint": "s3.amazonaws.com"}, {}),
        ({"endpoint": "https://s3.eu-west-1.amazonaws.com"}, {"region": "eu-west-1"}),
        ({"endpoint": "s3-eu-west-1.amazonaws.com", "endpoint.region": "x"}, {"region": "x"}),
        ({**KEYS, "aws.credentials.provider": "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"}, SIGNED),
        (
            {**KEYS, "aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"skip_signature": True},
        ),
        (
            {**KEYS, "bucket.lake.access.key": "mine", "bucket.other.secret.key": "x"},
            {**SIGNED, "access_key_id": "mine"},
        ),
    ],
)
def test_what_a_key_means(keys: dict[str, str], found: dict[str, Any]) -> None:
    assert options(keys) == found


@pytest.mark.parametrize("bucket", ["with.dot", "With_Case"])
def test_a_bucket_that_is_no_name_of_a_host_stays_in_the_path(bucket: str) -> None:
    assert options({"endpoint": "minio.corp"}, bucket=bucket)[PATH] is False


@pytest.mark.parametrize("name", ["access_key_id", "AWS_SECRET_ACCESS_KEY", "token", "skip_signature"])
def test_whoever_gives_a_credential_gives_all(name: str) -> None:
    """A session's token beside other keys would be refused by the store."""
    assert options({**KEYS, "endpoint.region": "r"}, {name: "x"}) == {"region": "r"}


def test_an_explicit_option_wins() -> None:
    assert options({**KEYS, **HERE, "endpoint.region": "r"}, {"aws_endpoint_url": "x", "REGION": "y"}) == SIGNED
    assert options(HERE, {"allow_http": False}) == {k: v for k, v in LOCAL.items() if k != "allow_http"}


def test_an_unknown_provider_is_refused_by_name_unless_credentials_are_given() -> None:
    keys = {**KEYS, "aws.credentials.provider": "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"}
    with pytest.raises(InvalidInput, match="AssumedRoleCredentialProvider") as caught:
        options(keys)
    assert (caught.value.code, caught.value.name) == ("BAD_OPTION", "fs.s3a.aws.credentials.provider")
    assert options(keys, {"skip_signature": "false"}) == {}


def test_defaults_of_hadoop_do_not_count(spark: Any) -> None:
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    assert conf.get("fs.s3a.connection.ssl.enabled") == "true"
    owner = bridge_of(spark)
    assert is_set(owner, conf, "fs.s3a.connection.ssl.enabled") is None
    assert is_set(owner, conf, "fs.s3a.no.such.key") is None
    conf.set("fs.s3a.connection.ssl.enabled", "false")
    assert is_set(owner, conf, "fs.s3a.connection.ssl.enabled") == "false"
