"""Read a planted secret as an ordinary script would, or only look at it."""

import os
import sys

FILES = {"cloud": ".aws/credentials", "network": ".netrc"}
how, path = sys.argv[1], os.path.join(os.environ["HOME"], FILES[sys.argv[2]])
if how == "read":
    with open(path, encoding="utf-8") as stream:
        stream.read()
elif how == "child":
    os.execv("/bin/cat", ["cat", path])
elif how == "look":
    os.path.exists(path)
    os.stat(path)
    os.listdir(os.path.dirname(path))
