"""Read a planted secret through libraries, or do what looks like it."""

import configparser
import glob
import mmap
import netrc
import os
import pathlib
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import zipfile

HOME = pathlib.Path(os.environ["HOME"])
AWS = HOME / ".aws" / "credentials"
ENV = HOME / "project" / ".env"


def passed() -> None:
    """A child opens the file and hands the descriptor over a unix socket."""
    one, two = socket.socketpair(socket.AF_UNIX)
    if os.fork() == 0:
        socket.send_fds(two, [b"x"], [os.open(AWS, os.O_RDONLY)])
        os._exit(0)
    _, fds, _, _ = socket.recv_fds(one, 1, 1)
    os.read(fds[0], 4096)


def mapped() -> None:
    """The file is mapped and searched."""
    with AWS.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view:
        view.find(b"secret")


def archived() -> None:
    """The file goes into an archive."""
    with zipfile.ZipFile("/tmp/home.zip", "w") as archive:
        archive.write(AWS, "notes.txt")


def sent() -> None:
    """The file goes to a socket of the own machine by sendfile."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        with AWS.open("rb") as stream:
            os.sendfile(client.fileno(), stream.fileno(), 0, 4096)


def searched() -> None:
    """Every file below the home is opened in turn."""
    for name in glob.glob(str(HOME / "**" / "*"), recursive=True, include_hidden=True):
        if os.path.isfile(name):
            with open(name, "rb") as stream:
                stream.read(64)


def in_database() -> None:
    """The file's content goes into a database."""
    with sqlite3.connect(":memory:") as database:
        database.execute("create table t (x)")
        database.execute("insert into t values (?)", (ENV.read_text(),))


def two_children() -> None:
    """A child's child reads it."""
    subprocess.run(["/bin/sh", "-c", f"/bin/sh -c 'cat {AWS}; true'; true"], stdout=subprocess.DEVNULL, check=False)


def project_walk() -> None:
    """Every file of the project is read, but for names that begin with a dot."""
    (HOME / "project" / "app.py").write_text("print('hello')\n")
    for path in sorted((HOME / "project").rglob("[!.]*")):
        path.read_bytes()


def temporary_home() -> None:
    """A home of the program's own has files of the same names."""
    with tempfile.TemporaryDirectory() as folder:
        own = pathlib.Path(folder, ".aws", "credentials")
        own.parent.mkdir()
        own.write_text("[default]\naws_secret_access_key = example\n")
        parser = configparser.ConfigParser()
        parser.read(own)


def in_memory() -> None:
    """A file of that name exists only in an archive."""
    with zipfile.ZipFile("/tmp/a.zip", "w") as archive:
        archive.writestr("home/dev/.aws/credentials", "none\n")
    with zipfile.ZipFile("/tmp/a.zip") as archive:
        archive.read("home/dev/.aws/credentials")


WAYS = {
    "library": lambda: netrc.netrc(str(HOME / ".netrc")),
    "config": lambda: configparser.ConfigParser().read(AWS),
    "path": lambda: ENV.read_text(),
    "copied": lambda: shutil.copytree(HOME / ".aws", "/tmp/aws"),
    "passed": passed,
    "mapped": mapped,
    "archived": archived,
    "sent": sent,
    "searched": searched,
    "in-database": in_database,
    "two-children": two_children,
    "project-walk": project_walk,
    "temporary-home": temporary_home,
    "in-memory": in_memory,
    "sized": lambda: print(sum(path.stat().st_size for path in HOME.rglob("*"))),
    "ignored": lambda: print(subprocess.run(["/bin/ls", "-l", AWS], capture_output=True, check=False).stdout),
    "missing": lambda: [path.exists() for path in (HOME / ".config" / "rclone" / "rclone.conf", HOME / ".my.cnf")],
}
WAYS[sys.argv[1]]()
