#!/usr/bin/env python3
"""A minimal backend of a to-do list. It stores rows in SQLite and reports each change to Bellhop as a database webhook
would.
It needs only the standard library. Use it only for development, because it signs a token for any name.

    server.py [--port 8090] [--bellhop http://127.0.0.1:8080]

BELLHOP_JWT_SECRET and BELLHOP_CHANGES_SECRET must be those of the service."""
import argparse
import base64
import hashlib
import hmac
import http.server
import json
import os
import sqlite3
import threading
import time
import urllib.parse
import urllib.request

FOLDER = os.path.dirname(os.path.abspath(__file__))
SECRET = os.environ["BELLHOP_JWT_SECRET"].encode()
CHANGES_SECRET = os.environ["BELLHOP_CHANGES_SECRET"]
LOCK = threading.Lock()


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def signed(user):
    """Returns a token of the user that is valid for a day (HS256)."""
    claims = {"sub": user, "iat": int(time.time()), "exp": int(time.time()) + 86_400}
    text = b".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return (text + b"." + encoded(hmac.new(SECRET, text, hashlib.sha256).digest())).decode()


def user_of(token):
    text, _, signature = token.rpartition(".")
    wanted = encoded(hmac.new(SECRET, text.encode(), hashlib.sha256).digest()).decode()
    if not hmac.compare_digest(signature, wanted):
        return None
    payload = text.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims["sub"] if claims["exp"] > time.time() else None


def row(database, number):
    found = database.execute("SELECT id, user_id, title, done FROM todos WHERE id = ?", (number,)).fetchone()
    return dict(zip(("id", "user_id", "title", "done"), (*found[:3], bool(found[3])))) if found else None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, kind="application/json"):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        if address.path == "/":
            with open(os.path.join(FOLDER, "index.html"), "rb") as file:
                return self.answer(200, file.read(), "text/html; charset=utf-8")
        if address.path == "/settings":
            user = urllib.parse.parse_qs(address.query).get("user", ["ada"])[0]
            return self.answer(200, {"bellhop": self.server.bellhop, "token": signed(user)})
        return self.change()

    def change(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else {}
        user = user_of((self.headers.get("Authorization") or "").removeprefix("Bearer "))
        if user is None:
            return self.answer(401, {})
        path, _, number = self.path[1:].partition("/")
        if path != "todos":
            return self.answer(404, {})
        with LOCK:
            database = self.server.database
            old = row(database, int(number)) if number.isdigit() else None
            if number and (old is None or old["user_id"] != user):
                return self.answer(404, {})
            key = old["id"] if old else None
            if self.command == "POST":
                insert = "INSERT INTO todos (user_id, title) VALUES (?, ?)"
                key = database.execute(insert, (user, str(body["title"])[:200])).lastrowid
            elif self.command == "PATCH":
                database.execute("UPDATE todos SET done = ? WHERE id = ?", (bool(body["done"]), key))
            elif self.command == "DELETE":
                database.execute("DELETE FROM todos WHERE id = ?", (key,))
            database.commit()
            new = row(database, key) if key else None
            numbers = database.execute("SELECT id FROM todos WHERE user_id = ? ORDER BY id", (user,)).fetchall()
            items = [row(database, number) for number, in numbers]
        if self.command != "GET":
            self.tell({"POST": "INSERT", "PATCH": "UPDATE", "DELETE": "DELETE"}[self.command], old, new)
        return self.answer(200, items)

    do_POST = do_PATCH = do_DELETE = change

    def tell(self, operation, old, new):
        """Sends the body of a Supabase webhook. A header names the page that made the change."""
        change = {"type": operation, "schema": "public", "table": "todos", "record": new, "old_record": old}
        headers = {"Content-Type": "application/json", "X-Webhook-Secret": CHANGES_SECRET}
        if self.headers.get("X-Client-Id"):
            headers["X-Client-Id"] = self.headers["X-Client-Id"]
        address = f"{self.server.bellhop}/v1/changes"
        urllib.request.urlopen(urllib.request.Request(address, json.dumps(change).encode(), headers), timeout=10)

    def log_message(self, *_):
        pass


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, default=8090)
    options.add_argument("--bellhop", default="http://127.0.0.1:8080")
    options.add_argument("--database", default="todo.sqlite")
    options = options.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.bellhop = options.bellhop
    server.database = sqlite3.connect(options.database, check_same_thread=False)
    server.database.execute(
        "CREATE TABLE IF NOT EXISTS todos "
        "(id INTEGER PRIMARY KEY, user_id TEXT NOT NULL, title TEXT NOT NULL, done BOOLEAN NOT NULL DEFAULT 0)")
    print(f"http://127.0.0.1:{options.port}/?user=ada", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
