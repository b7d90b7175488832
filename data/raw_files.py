"""The files of a data set as its authors publish them: found or downloaded, unpacked, verified.

What is verified is the *content* of each file after decompression, so a copy that was packed again
(another gzip header, another archive) is as good as the original, and nothing else is.
"""

import dataclasses
import gzip
import hashlib
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

import errors


@dataclasses.dataclass(frozen=True)
class RawFile:
    """One published file.

    Attributes:
        name: its published path, relative to the folder given; ".gz" is decompressed on reading.
        size: bytes of its content, decompressed.
        sha256: of its content, decompressed, in hex.
    """

    name: str
    size: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Download:
    """One file to download: a raw file itself, or a .tar.gz that holds several.

    Attributes:
        url: where it is published.
        sha256: of the file as downloaded, in hex.
    """

    url: str
    sha256: str

    @property
    def name(self) -> str:
        """The file name, the last part of the URL."""
        return PurePosixPath(self.url).name


def read(folder: Path, files: Iterable[RawFile], downloads: Iterable[Download] = ()) -> dict[str, bytes]:
    """Reads the decompressed content of every file; `verify` it afterwards.

    Each file may lie in `folder` under its published path or directly, or inside one of the
    published archives lying there.

    Args:
        folder: where to look.
        files: what to read.
        downloads: the published archives, by their names.

    Returns:
        Content by the name of the file.

    Raises:
        errors.UserError: files are missing; all of them are listed.
        errors.RunError: a file cannot be decompressed, as when it is cut short.
    """
    if not folder.is_dir():
        raise errors.UserError(f"{folder} is not a folder")
    contents: dict[str, bytes] = {}
    wanted = {file.name for file in files}
    for name in sorted(wanted):
        for path in (folder / name, folder / PurePosixPath(name).name):
            if path.is_file():
                contents[name] = decompressed(path)
                break
    for download in downloads:
        archive = folder / download.name
        if wanted - contents.keys() and archive.name.endswith(".tar.gz") and archive.is_file():
            contents |= _members(archive, wanted - contents.keys())
    missing = sorted(wanted - contents.keys())
    if missing:
        raise errors.UserError(f"{folder} lacks {len(missing)} raw files: {', '.join(missing)}")
    return contents


def decompressed(path: Path) -> bytes:
    """The content of a file, decompressed if its name ends in ".gz".

    Raises:
        errors.RunError: it cannot be decompressed, as when it is cut short.
    """
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            return file.read()
    except EOFError as error:
        raise errors.RunError(f"{path}: truncated, the gzip stream has no end") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise errors.RunError(f"{path}: damaged or no gzip file ({error})") from error


def verify(contents: Mapping[str, bytes], files: Iterable[RawFile]) -> None:
    """Checks size and SHA-256 of contents against what was published.

    Args:
        contents: what `read` returned.
        files: the files as published.

    Raises:
        errors.RunError: the first file that differs, with what was expected and what was found.
    """
    for file in files:
        content = contents[file.name]
        if len(content) != file.size:
            raise errors.RunError(
                f"{file.name}: expected {file.size:,} bytes of content, got {len(content):,}"
            )
        digest = hashlib.sha256(content).hexdigest()
        if digest != file.sha256:
            raise errors.RunError(f"{file.name}: expected content of SHA-256 {file.sha256}, got {digest}")


def download(downloads: Iterable[Download], folder: Path) -> None:
    """Downloads what is not yet in `folder`, showing a progress bar, and checks each SHA-256.

    Args:
        downloads: what to download.
        folder: where to put it; made when it does not exist.

    Raises:
        errors.RunError: the server cannot be reached, or what it sends is not what was published.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    for item in downloads:
        try:
            # Pooch downloads to a temporary name, so that a kill leaves no half file behind.
            pooch.retrieve(
                item.url,
                known_hash=f"sha256:{item.sha256}",
                fname=item.name,
                path=folder,
                downloader=pooch.HTTPDownloader(progressbar=True),
            )
        except (requests.RequestException, ValueError) as error:
            raise errors.RunError(
                f"cannot download {item.url}: {' '.join(str(error).split())}; "
                "with the file at hand, use --from DIR"
            ) from error


def _members(archive: Path, wanted: set[str]) -> dict[str, bytes]:
    contents = {}
    try:
        with tarfile.open(archive, "r:gz") as members:
            for member in members:
                if member.name in wanted and (file := members.extractfile(member)):
                    contents[member.name] = file.read()
    except EOFError as error:
        raise errors.RunError(f"{archive}: truncated, the gzip stream has no end") from error
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error) as error:
        raise errors.RunError(f"{archive}: damaged or no .tar.gz file ({error})") from error
    return contents
