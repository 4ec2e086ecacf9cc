"""`setrnn serve`: models behind an HTTP API, with a page for people."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setrnn.cli.console import note, warn
from setrnn.cli.options import Device
from setrnn.errors import MissingExtraError

if TYPE_CHECKING:
    from setrnn.serve.keys import ApiKeys

LIBRARIES = ("fastapi", "uvicorn", "httptools", "prometheus_client")


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Model folders, named as they are; NAME=FOLDER names one otherwise. The first "
            "is the default.",
            show_default=False,
        ),
    ],
    host: Annotated[
        str, typer.Option(help="The address to listen on; 127.0.0.1 is this machine only.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="The port; 0 takes any free one.")
    ] = 8000,
    api_key_file: Annotated[
        Path | None,
        typer.Option(help="A file of API keys, one a line; requests need one.", show_default=False),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A host name to answer to, such as a proxy's. By default, on this machine only "
            "and without a key: localhost.",
            show_default=False,
        ),
    ] = None,
    device: Device = "auto",
    workers: Annotated[
        int | None,
        typer.Option(
            help="Batches that are tagged at once.", show_default="one for each core; on a GPU one"
        ),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads that share a batch.")] = 1,
    max_texts: Annotated[int, typer.Option(help="Texts a request.")] = 64,
    max_words: Annotated[int, typer.Option(help="Words a text.")] = 10_000,
    max_body_bytes: Annotated[int, typer.Option(help="Bytes a request.")] = 4 << 20,
    queue: Annotated[
        int, typer.Option(help="Documents that may wait for a model; then the answer is 503.")
    ] = 4_096,
    batch: Annotated[int, typer.Option(help="Documents that are tagged at once.")] = 256,
    batch_ms: Annotated[
        float, typer.Option(help="Milliseconds a request waits for others to share a batch.")
    ] = 3.0,
) -> None:
    """Serve models: an HTTP API, and a page to tag with.

    SIGHUP loads models anew whose folders have changed; SIGTERM finishes what is in flight.
    """
    for library in LIBRARIES:
        if find_spec(library) is None:
            raise MissingExtraError(library, "serve", "Serving")
    from setrnn.serve.early_signals import ready_to_stop
    from setrnn.serve.hosts import check_names
    from setrnn.serve.listening import address_of, is_loopback, take_address
    from setrnn.serve.naming import named_folders
    from setrnn.serve.settings import ServeSettings

    settings = ServeSettings(max_texts, max_words, max_body_bytes, queue, batch, batch_ms, workers)
    check_names(allow_host or ())
    folders = named_folders(models)
    keys = _keys(api_key_file)
    listener = take_address(host, port)
    is_local = is_loopback(listener)
    if keys is None and not is_local:
        warn("anyone who can reach this address can use it. Add --api-key-file.")
    with ready_to_stop(note):
        note(f"Loading {', '.join(folders)} ...")
        # The libraries take seconds to import: only now, when all that was asked for can be done.
        from setrnn.serve.registry import Registry
        from setrnn.serve.server import serve as serve_until_stopped
        from setrnn.serve.workers import set_threads

        set_threads(threads)
        greeting = f"Listening on {address_of(listener)}"
        greeting += ", on this machine only" if is_local else ""
        greeting += "; requests need an API key." if keys is not None else "."
        # A key keeps other sites' pages out as well; and who listens to all knows its own names.
        hosts = allow_host or ([] if is_local and keys is None else None)
        left = serve_until_stopped(
            Registry(folders, device), settings, listener, keys, hosts, greeting, note
        )
    if left:
        raise typer.Exit(1)


def _keys(file: Path | None) -> ApiKeys | None:
    if file is None:
        return None
    from setrnn.serve.keys import ApiKeys

    return ApiKeys(file)
