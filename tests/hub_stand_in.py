"""A small stand-in for the HTTP interface of the Hugging Face hub, on 127.0.0.1."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit

READ, WRITE = "hf_reads_only", "hf_may_write"  # the tokens that it knows
OWNER = "me"


def git_id(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Repository:
    private: bool = False
    commits: list[dict[str, bytes]] = field(default_factory=lambda: [{".gitattributes": b""}])
    messages: list[str] = field(default_factory=list)
    tags: dict[str, int] = field(default_factory=dict)

    @property
    def files(self):
        return self.commits[-1]

    def find(self, revision):
        """Return the number of a commit by a branch, a tag or an id; None if there is none."""
        known = {self.sha(n): n for n in range(len(self.commits))} | self.tags
        return (known | {"main": len(self.commits) - 1}).get(revision)

    def sha(self, n):
        return f"{id(self) % 2**64:016x}{n:024x}"


@dataclass
class Hub:
    repositories: dict[str, Repository] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)  # large files, by their SHA-256
    requests: list[tuple[str, str]] = field(default_factory=list)
    uploads: int = 0  # of large files
    answer: Callable | None = None  # returns a status to fail with
    address: str = ""

    def count(self, method, part):
        return sum(each == method and part in path for each, path in self.requests)


def _hash(content):
    return hashlib.sha256(content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize, disable_nagle_algorithm = -1, True  # one packet per answer: else 40 ms each
    hub: Hub

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self._route()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 (names of http.server)

    def _route(self):
        self.path, self.sent = unquote(urlsplit(self.path).path), self._read()
        self.hub.requests.append((self.command, self.path))
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token not in ("", READ, WRITE):
            return self._say(401, error="Invalid credentials in Authorization header")
        if status := self.hub.answer and self.hub.answer(self.command, self.path):
            return self._say(status, error="refused")
        self.token = token
        for pattern, method in _ROUTES:
            if match := re.fullmatch(pattern, self.path):
                return method(self, *match.groups())
        return self._say(404, error=f"no such route: {self.command} {self.path}")

    def _read(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _say(self, status, body=None, error=None, code=None, headers=None):
        content = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        if error is not None:
            content = json.dumps({"error": error}).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if error is not None:
            self.send_header("X-Error-Message", error)
        if code is not None:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _find(self, name, revision="main"):
        """Return a repository and the number of a commit, or answer that there is none."""
        found = self.hub.repositories.get(name)
        if found is None or (found.private and not self.token):
            self._say(404, error="Repository not found", code="RepoNotFound")
            return None
        number = found.find(revision)
        if number is None:
            self._say(404, error="Invalid rev id", code="RevisionNotFound")
            return None
        return found, number

    def _may_write(self):
        if self.token == WRITE:
            return True
        self._say(401 if not self.token else 403, error="You need a token that may write")
        return False

    def _whoami(self):
        self._say(200 if self.token else 401, {"name": OWNER, "type": "user"})

    def _validate(self):
        self._say(200, {"errors": [], "warnings": []})

    def _create(self):
        if not self._may_write():
            return None
        asked = json.loads(self.sent)
        name = f"{asked.get('organization') or OWNER}/{asked['name']}"
        private = asked.get("visibility") == "private" or bool(asked.get("private"))
        if name in self.hub.repositories:
            return self._say(409, {"url": f"{self.hub.address}/{name}"})
        self.hub.repositories[name] = Repository(private)
        return self._say(200, {"url": f"{self.hub.address}/{name}", "name": name})

    def _info(self, name, revision="main"):
        if (found := self._find(name, revision)) is None:
            return
        repository, number = found
        siblings = [
            {"rfilename": path, "size": len(content), "blobId": git_id(content)}
            for path, content in repository.commits[number].items()
        ]
        values = {"id": name, "modelId": name, "private": repository.private, "tags": []}
        self._say(200, values | {"sha": repository.sha(number), "siblings": siblings})

    def _tree(self, name, revision):
        if (found := self._find(name, revision)) is None:
            return
        repository, number = found
        files = repository.commits[number].items()
        rows = []
        for path, content in files:
            row = {"type": "file", "path": path, "size": len(content), "oid": git_id(content)}
            if path.endswith(".safetensors"):
                row["lfs"] = {"oid": _hash(content), "size": len(content), "pointerSize": 130}
            rows.append(row)
        self._say(200, json.dumps(rows).encode())

    def _preupload(self, name, revision):
        if not self._may_write() or (found := self._find(name, revision)) is None:
            return
        files = found[0].files
        rows = []
        for each in json.loads(self.sent)["files"]:
            path = each["path"]
            mode = "lfs" if path.endswith(".safetensors") else "regular"
            there = files.get(path)
            old = None if there is None else _hash(there) if mode == "lfs" else git_id(there)
            rows.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": old})
        self._say(200, {"files": rows})

    def _batch(self, name):
        objects = []
        for each in json.loads(self.sent)["objects"]:
            row = {"oid": each["oid"], "size": each["size"]}
            if each["oid"] not in self.hub.objects:
                row["actions"] = {"upload": {"href": f"{self.hub.address}/objects/{each['oid']}"}}
            objects.append(row)
        self._say(200, {"transfer": "basic", "objects": objects})

    def _object(self, oid):
        if _hash(self.sent) != oid:
            return self._say(400, error="another content")
        self.hub.uploads += 1
        self.hub.objects[oid] = self.sent
        return self._say(200)

    def _commit(self, name, revision):
        if not self._may_write() or (found := self._find(name, revision)) is None:
            return None
        repository, number = found
        files = dict(repository.files)
        for line in self.sent.splitlines():
            row = json.loads(line)
            value = row["value"]
            if row["key"] == "header":
                if value.get("parentCommit") not in (None, repository.sha(number)):
                    return self._say(412, error="A commit has happened since")
                message = value["summary"]
            elif row["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif row["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
            elif row["key"] == "deletedFile":
                del files[value["path"]]
        repository.commits.append(files)
        repository.messages.append(message)
        oid = repository.sha(number + 1)
        address = f"{self.hub.address}/{name}/commit/{oid}"
        return self._say(200, {"success": True, "commitOid": oid, "commitUrl": address})

    def _tag(self, name, revision):
        if not self._may_write() or (found := self._find(name, revision)) is None:
            return
        found[0].tags[json.loads(self.sent)["tag"]] = found[1]
        self._say(200)

    def _resolve(self, name, revision, path):
        if (found := self._find(name, revision)) is None:
            return None
        repository, number = found
        content = repository.commits[number].get(path)
        if content is None:
            return self._say(404, error="Entry not found", code="EntryNotFound")
        is_large = path.endswith(".safetensors")
        etag = _hash(content) if is_large else git_id(content)
        headers = {"X-Repo-Commit": repository.sha(number), "ETag": f'"{etag}"'}
        return self._say(200, content, headers=headers)


_NAME, _REVISION = "([^/]+/[^/]+)", "(.+)"
_ROUTES = [
    ("/api/whoami-v2", _Handler._whoami),
    ("/api/validate-yaml", _Handler._validate),
    ("/api/repos/create", _Handler._create),
    (f"/api/models/{_NAME}/preupload/{_REVISION}", _Handler._preupload),
    (f"/api/models/{_NAME}/commit/{_REVISION}", _Handler._commit),
    (f"/api/models/{_NAME}/tag/{_REVISION}", _Handler._tag),
    (f"/api/models/{_NAME}/tree/([^/]+)", _Handler._tree),
    (f"/api/models/{_NAME}/revision/{_REVISION}", _Handler._info),
    (f"/api/models/{_NAME}", _Handler._info),
    (rf"/{_NAME}\.git/info/lfs/objects/batch", _Handler._batch),
    ("/objects/(.+)", _Handler._object),
    (f"/{_NAME}/resolve/([^/]+)/(.+)", _Handler._resolve),
]


@contextmanager
def running_hub():
    """Yield a hub that answers at its address."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
