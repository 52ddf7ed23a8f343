"""A real HTTP server on this machine that can be told to misbehave."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FileServer:
    """Files by path. The first answers end after `breaks` bytes, one entry for each; `status` is an error for all."""

    files: dict[str, bytes]
    breaks: list[int] = field(default_factory=list)
    ranges: bool = True
    status: int | None = None
    delay: threading.Event | None = None  # answers wait for it
    requests: list[str] = field(default_factory=list)  # paths, with the first byte asked for
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@contextmanager
def serving(server: FileServer) -> Iterator[FileServer]:
    """While the context lasts, the files are there."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content, wanted = server.files.get(self.path[1:]), self.headers.get("Range", "")
            first = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
            server.requests.append(f"{self.path[1:]}@{first}")
            if server.delay is not None:
                server.delay.wait(60)
            if server.status or content is None:
                self.send_error(server.status or 404)
                return
            first = first if server.ranges else 0
            if first >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.end_headers()
                return
            self.send_response(206 if first else 200)
            if first:
                self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - first))
            self.end_headers()
            end = first + server.breaks.pop(0) if server.breaks else None
            self.wfile.write(content[first:end])

        def log_message(self, format: str, *args: object) -> None:
            """Be silent."""

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.port = running.server_address[1]
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        running.shutdown()
        thread.join()
        running.server_close()
