"""Proxies as somebody sets them up for the first time: they compress whatever they can, and buffer as they do by default.

Each runs in the foreground with a configuration of its own in a temporary folder. No service of the system is started.
"""

import http.client
import os
import pathlib
import shutil
import subprocess

from harness.ports import free_port
from harness.services import request
from harness.waiting import Failed, wait_until

HERE = pathlib.Path(__file__).resolve().parent
NGINX = """
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    gzip on;
    gzip_proxied any;
    gzip_types *;
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://127.0.0.1:{bellhop}; {more} }}
    }}
}}
"""
# A process of root must name a user for its workers.
APACHE = """
ServerRoot {folder}
ServerName 127.0.0.1
PidFile {folder}/pid
DefaultRuntimeDir {folder}
Listen 127.0.0.1:{port}
ErrorLog {folder}/error.log
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule filter_module {modules}/mod_filter.so
LoadModule deflate_module {modules}/mod_deflate.so
LoadModule proxy_module {modules}/mod_proxy.so
LoadModule proxy_http_module {modules}/mod_proxy_http.so
{user}
SetOutputFilter DEFLATE
ProxyPass / http://127.0.0.1:{bellhop}/ {more}
"""
CADDY = """
{{
    admin off
    auto_https off
}}
http://127.0.0.1:{port} {{
    encode zstd gzip
    reverse_proxy 127.0.0.1:{bellhop} {more}
}}
"""
HAPROXY = """
defaults
    mode http
    timeout connect 5s
    timeout client 50s
    timeout server 50s
    compression algo gzip
frontend public
    bind 127.0.0.1:{port}
    default_backend bellhop
backend bellhop
    server one 127.0.0.1:{bellhop}
"""


class Front:
    """A running proxy in front of Bellhop."""

    name = ""
    package = ""
    programs = ()
    configuration = ""

    def __init__(self, folder, bellhop, more=""):
        self.folder = folder / self.name
        self.folder.mkdir()
        # Processes of another user write here.
        self.folder.chmod(0o777)
        self.port = free_port()
        program = next((found for name in self.programs if (found := shutil.which(name))), None)
        if program is None:
            raise Failed(f"{self.name} is not installed: apt-get install {self.package}")
        names = {"folder": self.folder, "port": self.port, "bellhop": bellhop, "more": more, **self.names()}
        self.file = self.folder / "configuration"
        self.file.write_text(self.configuration.format(**names))
        with open(self.folder / "output.log", "wb") as log:
            self.process = subprocess.Popen(
                [program, *self.arguments(bellhop)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "HOME": str(self.folder), **self.environment()})
        wait_until(self.answers, lambda: f"{self.name} to answer:\n{self.log()}")

    def names(self):
        return {}

    def environment(self):
        return {}

    def arguments(self, bellhop):
        return ["-f", str(self.file)]

    def answers(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended with {self.process.returncode}:\n{self.log()}")
        try:
            return request(self.port, "GET", "/healthz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def log(self):
        return (self.folder / "output.log").read_text(errors="replace")[-2000:]

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Nginx(Front):
    name = "nginx"
    package = "nginx-light"
    programs = ("nginx", "/usr/sbin/nginx")
    configuration = NGINX

    def arguments(self, bellhop):
        return ["-p", str(self.folder), "-c", str(self.file), "-g", "daemon off;"]


class Apache(Front):
    name = "Apache"
    package = "apache2-bin"
    programs = ("apache2", "/usr/sbin/apache2")
    configuration = APACHE

    def names(self):
        user = "User nobody\nGroup nogroup" if os.geteuid() == 0 else ""
        return {"modules": "/usr/lib/apache2/modules", "user": user}

    def arguments(self, bellhop):
        return ["-f", str(self.file), "-D", "FOREGROUND"]


class Caddy(Front):
    name = "Caddy"
    package = "caddy"
    programs = ("caddy",)
    configuration = CADDY

    def environment(self):
        return {"XDG_DATA_HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder)}

    def arguments(self, bellhop):
        return ["run", "--config", str(self.file), "--adapter", "caddyfile"]


class HAProxy(Front):
    name = "HAProxy"
    package = "haproxy"
    programs = ("haproxy", "/usr/sbin/haproxy")
    configuration = HAPROXY


class Express(Front):
    name = "Express"
    package = "nodejs node-express node-compression"
    programs = ("node",)

    def environment(self):
        return {"NODE_PATH": "/usr/share/nodejs"}

    def arguments(self, bellhop):
        return [str(HERE / "express.js"), str(self.port), str(bellhop)]


FRONTS = (Nginx, Apache, Caddy, HAProxy, Express)
