"""A proxy before a server that forwards nothing while the network is cut. As with an unplugged cable, neither side is
told."""

import contextlib
import socket
import threading


class Partition:
    def __init__(self, target):
        self.target = target
        self.passing = threading.Event()
        self.passing.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    @contextlib.contextmanager
    def cut(self):
        """Keeps back what either side sends, until the end."""
        self.passing.clear()
        try:
            yield
        finally:
            self.passing.set()

    def close(self):
        self.passing.set()
        for one in [self.listener, *self.sockets]:
            end(one)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                self.sockets += [client, server]
                for way in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=way, daemon=True).start()

    def _carry(self, source, sink):
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                self.passing.wait()
                sink.sendall(piece)
        self.passing.wait()
        for one in (source, sink):
            end(one)


def end(one):
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
