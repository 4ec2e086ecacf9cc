"""`setrnn serve`: models behind an HTTP API, with a page for people."""

from __future__ import annotations

import ipaddress
import signal
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from setrnn.cli import options
from setrnn.cli.options import argument, option
from setrnn.cli.terminal import note, warn
from setrnn.errors import MissingExtraError
from setrnn.models.folder import read_version
from setrnn.models.hub import is_hub
from setrnn.serve.settings import (
    ApiKeys,
    ServeSettings,
    bind_address,
    check_host_names,
    name_folders,
)

LIBRARIES = ("fastapi", "uvicorn", "httptools", "prometheus_client")


def serve(
    settings: ServeSettings,
    models: Annotated[
        list[str],
        argument(
            "MODEL",
            "Model folders or hub:NAME. A model has the name of its folder, or NAME in "
            "NAME=FOLDER. The first model is the default.",
        ),
    ],
    host: Annotated[str, option("The address; 127.0.0.1 is this machine only.")] = "127.0.0.1",
    port: Annotated[int, option("The port; 0 takes any free port.", min=0, max=65_535)] = 8000,
    api_key_file: Annotated[
        Path | None, option("A file with one API key per line; requests need one of them.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        option(
            "A host name that requests may use, such as a proxy's. May be repeated.",
            "NAME",
            default="any; on 127.0.0.1 without API keys, localhost and IP addresses",
        ),
    ] = None,
    device: options.Device = "auto",
    threads: Annotated[int, option("The number of threads per batch.", min=1)] = 1,
) -> None:
    """Serve models: an HTTP API, and a page to tag with.

    SIGHUP reloads the models whose folders have changed; SIGTERM finishes the current requests.
    """
    for library in LIBRARIES:
        if find_spec(library) is None:
            raise MissingExtraError(library, "serve", "Serving")
    check_host_names(allow_host or ())
    folders = name_folders(models)
    for folder in folders.values():
        if not is_hub(folder):
            read_version(folder)  # refuses what is not a model before it listens
    keys = None if api_key_file is None else ApiKeys(api_key_file)
    listener = bind_address(host, port)
    address, port = listener.getsockname()[:2]
    is_local = ipaddress.ip_address(address).is_loopback
    if keys is None and not is_local:
        warn("anyone who can reach this address can use the service. Add --api-key-file.")
    # A key keeps the pages of other sites out too; a public address has names we do not know.
    hosts = allow_host or ([] if is_local and keys is None else None)
    greeting = (
        f"Listening on http://{f'[{address}]' if ':' in address else address}:{port}"
        f"{', on this machine only' if is_local else ''}"
        f"{'; requests need an API key' if keys is not None else ''}."
    )
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the server can reload its models
    note(f"Loading {', '.join(folders)} ...")
    # Importing the libraries takes seconds: only after all arguments have been checked.
    import torch

    from setrnn.serve.registry import Registry
    from setrnn.serve.server import serve as serve_until_stopped

    # Several batches with one thread each are faster than one batch with several threads, which
    # wait for each other at every step.
    torch.set_num_threads(threads)
    if serve_until_stopped(Registry(folders, device), settings, listener, keys, hosts, greeting):
        raise typer.Exit(1)
