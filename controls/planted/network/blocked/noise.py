"""The error numbers of denial, from calls that have nothing to do with the network."""

import errno
import os
import threading

try:
    os.chmod("/usr", 0o777)
except OSError as error:
    assert error.errno in (errno.EPERM, errno.EROFS)
try:
    open("/run/record/strace.log").close()
except OSError as error:
    assert error.errno == errno.EACCES
threading.Lock().acquire()
lock = threading.Lock()
lock.acquire()
lock.acquire(timeout=0.2)
print("write(3<TCP:[10.200.0.2:1->203.0.113.7:443]>, 5) = -1 EPERM (Operation not permitted)")
