"""Opens files for writing, but not those that another user may have planted; the rules are src/base/trusted.h's."""

import contextlib
import errno
import fcntl
import json
import os
import stat
import sys
from typing import Any, BinaryIO, Callable, Dict, Iterator, NamedTuple, Optional, Type

LINKS = 40      # the kernel's limit
FOR_ALL = "in a directory where everybody may create files"


@contextlib.contextmanager
def raising(fault: "Type[Exception]", what: str) -> "Iterator[None]":
    """A context manager that turns an OSError into the given exception, which names what failed."""
    try:
        yield
    except OSError as why:
        raise fault(f"{what}: {why.strerror}") from None


def content(path: str) -> str:
    """The text of a file such as those of /proc; empty if it can't be read."""
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""


class Planted(PermissionError):
    """Something on the path belongs to another user, or another user may change it."""

    def __init__(self, text: str) -> None:
        super().__init__(errno.EACCES, text)


class Spot(NamedTuple):
    """Where a path leads after following links. As a context manager, it closes the directory's descriptor."""
    directory: int
    name: str
    seen: "Optional[os.stat_result]"    # what exists there
    is_kernels: bool                    # below /proc, where links are not files: /proc/self/fd/3

    def __enter__(self) -> "Spot":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.directory)

    def open(self, flags: int) -> int:
        return os.open(self.name, flags | (0 if self.is_kernels else os.O_NOFOLLOW), 0o666, dir_fd=self.directory)


def is_ours(st: os.stat_result) -> bool:
    return st.st_uid in (0, os.geteuid())


def check_planted(at: str, st: os.stat_result, inside: os.stat_result) -> None:
    """Where everybody may create files, all on the path must belong to root, to us or to the directory's owner."""
    if not inside.st_mode & stat.S_IWOTH:
        return
    if not is_ours(st) and st.st_uid != inside.st_uid:
        raise Planted(f"{at} is a symbolic link that another user ({st.st_uid}) owns, {FOR_ALL} (try another directory, "
                      "or remove the link)" if stat.S_ISLNK(st.st_mode) else
                      f"{at} belongs to another user ({st.st_uid}), {FOR_ALL} (try another directory, or chown "
                      f"{os.geteuid()})")
    if stat.S_ISREG(st.st_mode) and st.st_nlink > 1:
        raise Planted(f"{at} has a second name (a hard link), which another user may have made (try a copy of the file)")


def check_ours(at: str, st: os.stat_result, _inside: os.stat_result) -> None:
    """Everything on the path must belong to root or us, and nobody else may be able to change it."""
    if not is_ours(st):
        raise Planted(f"{at} belongs to another user ({st.st_uid})")
    if st.st_mode & stat.S_IWOTH and not stat.S_ISLNK(st.st_mode) and not st.st_mode & stat.S_ISVTX:
        raise Planted(f"everybody may write to {at}")


def find(path: str, check: "Callable[[str, os.stat_result, os.stat_result], None]" = check_planted) -> Spot:
    """Walk a path, opening each directory relative to the one before. Raises OSError."""
    left, shown, links = list(filter(None, path.split("/"))), "/" if path.startswith("/") else "", 0
    at = os.open(shown or ".", os.O_PATH | os.O_DIRECTORY)
    try:
        while left and not path.endswith("/"):
            name, inside = left.pop(0), os.fstat(at)
            here = os.path.join(shown, name)
            is_kernels = os.path.exists("/proc/self") and inside.st_dev == os.stat("/proc/self").st_dev
            try:
                one = os.open(name, os.O_PATH | (0 if is_kernels else os.O_NOFOLLOW), dir_fd=at)
            except FileNotFoundError:
                if left:
                    raise
                return Spot(at, name, None, is_kernels)
            st = os.fstat(one)
            try:
                check(here, st, inside)
                target = os.readlink("", dir_fd=one) if stat.S_ISLNK(st.st_mode) else None
            except OSError:
                os.close(one)
                raise
            if target is None and not left and not stat.S_ISDIR(st.st_mode):
                os.close(one)
                return Spot(at, name, st, is_kernels)
            if target is None:
                os.close(at)
                at, shown = one, here
                continue
            os.close(one)
            links, left = links + 1, [*filter(None, target.split("/")), *left]
            if links > LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if target.startswith("/"):
                os.close(at)
                at, shown = os.open("/", os.O_PATH | os.O_DIRECTORY), "/"
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    except BaseException:
        os.close(at)
        raise


def opener(path: str, flags: int) -> int:
    """An opener for open(): the file that is written is the one that was checked, or is newly created."""
    with find(path) as spot:
        if spot.seen and flags & os.O_EXCL:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        fd = spot.open(flags & ~os.O_TRUNC & ~os.O_CREAT if spot.seen else
                       flags | (os.O_EXCL if flags & os.O_CREAT else 0))
    st = os.fstat(fd)
    if spot.seen and not os.path.samestat(st, spot.seen):
        os.close(fd)
        raise Planted("it was replaced while it was opened")
    if flags & os.O_TRUNC and stat.S_ISREG(st.st_mode):
        os.ftruncate(fd, 0)
    return fd


def write(path: str, data: bytes) -> None:
    """Replace a file atomically; pipes and devices are written to. Raises OSError."""
    with find(path) as spot:
        if spot.seen and (spot.is_kernels or not stat.S_ISREG(spot.seen.st_mode)):
            with open(path, "wb", opener=opener) as file:
                file.write(data)
            return
        beside = spot._replace(name=f".{spot.name[:200]}.{os.urandom(4).hex()}", is_kernels=False)
        fd = beside.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with open(fd, "wb") as file:
                if spot.seen:
                    os.fchmod(fd, stat.S_IMODE(spot.seen.st_mode) & 0o777)
                file.write(data)
            os.rename(beside.name, spot.name, src_dir_fd=spot.directory, dst_dir_fd=spot.directory)
        except BaseException:
            os.unlink(beside.name, dir_fd=spot.directory)
            raise


class Lines(contextlib.AbstractContextManager):     # type: ignore[type-arg]
    """JSON lines for a file, locked against other writers; "-" is stdout. `mode` is open()'s. Raises `fault`."""

    def __init__(self, path: str, mode: str, fault: "Type[Exception]", program: str, remedy: str) -> None:
        self.path, self._fault, self._is_new = path, fault, mode in ("xb", "wb") and path != "-"
        try:
            self.file: BinaryIO = sys.stdout.buffer if path == "-" else open(path, "ab" if mode == "wb" else mode, opener=opener)
            if path != "-":
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if mode == "wb" and os.fstat(self.file.fileno()).st_size:
                self.file.truncate(0)
        except FileExistsError:
            raise fault(f"{path}: already exists: {remedy}") from None
        except BlockingIOError:
            self.file.close()
            raise fault(f"{path}: another {program} is writing it right now") from None
        except OSError as why:
            raise self.failed(why) from None

    def failed(self, why: OSError) -> Exception:
        return why if self.path == "-" else self._fault(f"{self.path}: {why.strerror}")

    def begin(self, header: "Dict[str, Any]") -> None:
        """Write the header. If that fails, a new file is removed, as no program could read it."""
        try:
            self.line(header)
        except OSError as why:
            if self._is_new and stat.S_ISREG(os.fstat(self.file.fileno()).st_mode):     # not a device
                with contextlib.suppress(OSError):
                    os.unlink(os.path.realpath(self.path))
            raise self.failed(why) from None
        if self._is_new:        # the directory entry must survive a system crash, too
            with contextlib.suppress(OSError):      # a directory may be unreadable, and not all file systems can do it
                place = os.open(os.path.dirname(os.path.abspath(self.path)), os.O_RDONLY)
                try:
                    os.fsync(place)
                finally:
                    os.close(place)

    def line(self, value: "Dict[str, Any]") -> None:
        """Append a line, synced to disk."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        self.file.write(text.encode("utf-8", "backslashreplace") + b"\n")
        self.file.flush()
        if self.path != "-":
            os.fsync(self.file.fileno())

    def close(self) -> None:
        if self.path != "-":
            self.file.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def must_be_ours(path: str) -> None:
    """Check that a path's file, if any, and directories are ours or root's, not writable for all. Raises OSError."""
    with contextlib.suppress(FileNotFoundError, IsADirectoryError):
        os.close(find(os.path.abspath(path), check_ours).directory)


def own_folder(path: str) -> None:
    """Create a directory of mode 700 unless it exists. Raises OSError if another user can write to it."""
    with contextlib.suppress(IsADirectoryError), find(path) as spot:
        if not spot.seen:
            os.mkdir(spot.name, 0o700, dir_fd=spot.directory)
    st = os.lstat(path)
    if not stat.S_ISDIR(st.st_mode) or st.st_uid != os.geteuid() or st.st_mode & 0o022:
        raise Planted("not a folder that only this user writes (remove it)")
