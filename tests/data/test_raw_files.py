import functools
import gzip
import hashlib
import http.server
import io
import tarfile
import threading

import pytest

import errors
from data import raw_files
from data.raw_files import Download, RawFile


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def archive(**members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(f"inside/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def test_gzip_is_opened_and_its_packing_does_not_matter(tmp_path):
    content = b"published" * 100
    file = RawFile("x.gz", len(content), sha256(content))
    for level in (1, 9):
        (tmp_path / "x.gz").write_bytes(gzip.compress(content, level, mtime=level))
        contents = raw_files.read(tmp_path, [file])
        assert contents == {"x.gz": content}
        raw_files.verify(contents, [file])


def test_found_under_its_path_or_directly_or_in_the_archive(tmp_path):
    files = [RawFile(f"inside/{name}", 1, sha256(name.encode())) for name in "abc"]
    download = Download("https://example.org/some.tar.gz", "")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    (tmp_path / "some.tar.gz").write_bytes(archive(a=b"not this one", b=b"nor this", c=b"c"))
    contents = raw_files.read(tmp_path, files, [download])
    assert contents == {"inside/a": b"a", "inside/b": b"b", "inside/c": b"c"}
    raw_files.verify(contents, files)


@pytest.mark.parametrize(
    "name, content, parts",
    [
        ("x.gz", gzip.compress(bytes(range(256)) * 40, mtime=0)[:-20], ["x.gz: truncated"]),
        ("x.gz", b"<html>", ["x.gz", "no gzip file"]),
        ("x.gz", gzip.compress(b"ab", mtime=0)[:10] + b"\xff" * 9, ["x.gz", "damaged"]),
        ("some.tar.gz", archive(x=bytes(range(256)) * 40)[:-40], ["some.tar.gz: truncated"]),
        ("some.tar.gz", b"<html>", ["some.tar.gz", "no .tar.gz file"]),
    ],
)
def test_unreadable_files(tmp_path, name, content, parts, one_line):
    (tmp_path / name).write_bytes(content)
    wanted = "inside/x" if name.endswith(".tar.gz") else "x.gz"
    with pytest.raises(errors.RunError) as raised:
        raw_files.read(tmp_path, [RawFile(wanted, 1, "")], [Download("https://e.org/some.tar.gz", "")])
    one_line(raised, *parts)


def test_all_missing_files_are_listed(tmp_path, one_line):
    (tmp_path / "b").touch()
    with pytest.raises(errors.UserError) as raised:
        raw_files.read(tmp_path, [RawFile(name, 0, "") for name in "abc"])
    assert one_line(raised, tmp_path, "lacks 2 raw files: a, c").exit_code == 2
    with pytest.raises(errors.UserError) as raised:
        raw_files.read(tmp_path / "b", [])
    one_line(raised, "is not a folder")


@pytest.mark.parametrize(
    "content, parts",
    [
        (b"abd", ["x", f"SHA-256 {sha256(b'abc')}", f"got {sha256(b'abd')}"]),
        (b"ab", ["x", "expected 3 bytes", "got 2"]),
    ],
)
def test_other_content_than_published(content, parts, one_line):
    with pytest.raises(errors.RunError) as raised:
        raw_files.verify({"x": content}, [RawFile("x", 3, sha256(b"abc"))])
    one_line(raised, *parts)


@pytest.fixture
def server(tmp_path):
    """Serves a folder; yields the folder and its URL."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as http_server:
        threading.Thread(target=http_server.serve_forever).start()
        yield folder, f"http://127.0.0.1:{http_server.server_port}/"
        http_server.shutdown()


def test_download(tmp_path, server, capfd, one_line):
    served, url = server
    (served / "x.gz").write_bytes(b"content")
    good = Download(url + "x.gz", sha256(b"content"))
    into = tmp_path / "deep" / "down"
    raw_files.download([good], into)
    assert (into / "x.gz").read_bytes() == b"content"
    assert "100%" in capfd.readouterr().err

    (served / "x.gz").unlink()
    raw_files.download([good], into)  # is there already

    for bad, part in (
        (Download(url + "none.gz", sha256(b"")), "404"),
        (Download("http://127.0.0.1:9/x.gz", sha256(b"")), "127.0.0.1:9"),
    ):
        with pytest.raises(errors.RunError) as raised:
            raw_files.download([bad], into)
        assert one_line(raised, bad.url, part, "--from").exit_code == 1

    (served / "y.gz").write_bytes(b"tampered")
    with pytest.raises(errors.RunError) as raised:
        raw_files.download([Download(url + "y.gz", sha256(b"content"))], into)
    one_line(raised, "y.gz", sha256(b"content"), sha256(b"tampered"))
    assert sorted(path.name for path in into.iterdir()) == ["x.gz"]
