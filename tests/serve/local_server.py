"""A server in a thread of this process."""

import socket
import threading
import time
from contextlib import contextmanager

import uvicorn


@contextmanager
def serving(app, port=0):
    """Serve an application on this machine, and yield its port."""
    listener = socket.create_server(("127.0.0.1", port))
    port = listener.getsockname()[1]
    config = uvicorn.Config(app, ws="none", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join(10)
