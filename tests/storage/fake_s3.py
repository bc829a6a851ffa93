"""As much of S3 as a store needs, in this process: conditional puts, ranges, listings, multipart uploads, and a log of what was asked.

Bad credentials are those whose access key is ``wrong``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape


class FakeS3(BaseHTTPRequestHandler):
    """One bucket's objects; ``objects``, ``uploads`` and ``asked`` belong to the server (see ``serve``)."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    objects: dict[str, bytes]
    uploads: dict[str, dict[int, bytes]]
    asked: list[str]
    lock: threading.Lock

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", headers.pop("Content_Length", str(len(body))))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def target(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        self.asked.append(f"{self.command} {unquote(parts.path)}")
        key = unquote(parts.path).removeprefix("/bucket").removeprefix("/")
        return key, {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}

    def allowed(self) -> bool:
        if "Credential=wrong/" in self.headers.get("Authorization", ""):
            self.refuse(403, "InvalidAccessKeyId")
            return False
        return True

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        key, query = self.target()
        if not self.allowed():
            return
        if "list-type" in query:
            self.listing(query)
            return
        data = self.objects.get(key)
        if data is None:
            self.refuse(404, "NoSuchKey")
            return
        status, extra = 200, {}
        if wanted := self.headers.get("Range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, stop = int(first), min(int(last) + 1, len(data))
            if start >= len(data):
                self.refuse(416, "InvalidRange")
                return
            status, extra = 206, {"Content_Range": f"bytes {start}-{stop - 1}/{len(data)}"}
            data = data[start:stop]
        now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")  # noqa: TID251
        self.answer(status, data, ETag='"e"', Last_Modified=now, **extra)

    def listing(self, query: dict[str, str]) -> None:
        prefix, after, delimiter = query.get("prefix", ""), query.get("start-after", ""), query.get("delimiter")
        keys = sorted(k for k in self.objects if k.startswith(prefix) and k > after)
        folders = sorted(
            {prefix + k[len(prefix) :].split("/")[0] + "/" for k in keys if delimiter and "/" in k[len(prefix) :]}
        )
        shown = [k for k in keys if not delimiter or "/" not in k[len(prefix) :]]
        stamp = "2024-01-01T00:00:00.000Z"
        rows = "".join(
            f"<Contents><Key>{escape(k)}</Key><LastModified>{stamp}</LastModified><ETag>e</ETag><Size>{len(self.objects[k])}</Size></Contents>"
            for k in shown
        )
        rows += "".join(f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in folders)
        self.answer(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode())

    def do_PUT(self) -> None:
        key, query = self.target()
        data = self.body()
        if not self.allowed():
            return
        if "uploadId" in query:
            self.uploads[query["uploadId"]][int(query["partNumber"])] = data
            self.answer(200, ETag='"p"')
            return
        with self.lock:
            if self.headers.get("If-None-Match") == "*" and key in self.objects:
                self.refuse(412, "PreconditionFailed")
                return
            self.objects[key] = data
        self.answer(200, ETag='"e"')

    def do_POST(self) -> None:
        key, query = self.target()
        data = self.body()
        if "uploads" in query:
            self.uploads[key] = {}
            self.answer(
                200,
                f"<InitiateMultipartUploadResult><UploadId>{escape(key)}</UploadId></InitiateMultipartUploadResult>".encode(),
            )
        elif "uploadId" in query:
            parts = self.uploads.pop(query["uploadId"])
            self.objects[key] = b"".join(parts[n] for n in sorted(parts))
            self.answer(200, b"<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>")
        else:  # a bulk delete
            gone = [
                unescape(name.split("</Key>")[0], {"&apos;": "'", "&quot;": '"'})
                for name in data.decode().split("<Key>")[1:]
            ]
            for name in gone:
                self.objects.pop(name, None)
            rows = "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in gone)
            self.answer(200, f"<DeleteResult>{rows}</DeleteResult>".encode())

    def do_DELETE(self) -> None:
        key, _ = self.target()
        self.objects.pop(key, None)
        self.answer(204)


Server = TypeVar("Server", bound=FakeS3)


@contextmanager
def serve(kind: type[Server] = FakeS3) -> Iterator[tuple[dict[str, Any], type[Server]]]:  # type: ignore[assignment]
    """The storage options that reach a new, empty bucket named ``bucket``, and its handler."""
    handler = type("Handler", (kind,), {"objects": {}, "uploads": {}, "asked": [], "lock": threading.Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    options = {
        "endpoint": f"http://127.0.0.1:{server.server_port}",
        "region": "eu-west-1",
        "access_key_id": "right",
        "secret_access_key": "secret-value",
        "allow_http": True,
        "max_retries": 1,
        "retry_timeout": 5,
    }
    try:
        yield options, handler
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
