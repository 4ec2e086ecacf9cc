"""The page: files of this package, answered with a strict policy on what it may load."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@cache
def page_paths() -> dict[str, Path]:
    """Return the file behind each path of the page."""
    files = sorted(FOLDER.iterdir()) if FOLDER.is_dir() else []
    paths = {f"/{file.name}": file for file in files if file.suffix in MEDIA_TYPES}
    paths.pop(f"/{INDEX}", None)
    return {"/": FOLDER / INDEX, **paths}


async def page_file(request: Request) -> Response:
    """Answer a file of the page, or that it has not changed."""
    file = page_paths()[request.url.path]
    content = file.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {**HEADERS, "ETag": tag}
    if tag in request.headers.get("If-None-Match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=MEDIA_TYPES[file.suffix])
