"""A server in a thread of this process."""

import socket
import threading
import time
from contextlib import contextmanager

import uvicorn

from setrnn.serve.connections import Connections
from setrnn.serve.server import limited_config


@contextmanager
def serving(app, port=0, limits=None):
    """Serve an application on this machine, and yield its port."""
    listener = socket.create_server(("127.0.0.1", port))
    port = listener.getsockname()[1]
    server = uvicorn.Server(limited_config(Connections(app, limits)))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join(10)
