"""Builds the wheel of a package of pure Python, for pip and for releases, with the same bytes each time.

A build backend (PEP 517) by the standard library alone: no build needs the package index, or leaves files in the
checkout. pip runs it in the package's folder, which is one of this checkout.
"""

import base64
import hashlib
import re
import zipfile
from pathlib import Path


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder = Path.cwd()
    project = (folder / "pyproject.toml").read_text("utf-8")

    def read(field):
        return re.search(rf'^{field} = "(.+)"$', project, re.MULTILINE)[1]

    name, version = read("name"), read("version")
    package = name.replace("-", "_")
    stem = f"{package}-{version}"
    metadata = f"""Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {read("description")}
License: {read("license")}
Requires-Python: {read("requires-python")}
Description-Content-Type: text/markdown

"""
    sources = [one for one in sorted((folder / package).iterdir()) if one.is_file()]
    files = {f"{package}/{one.name}": one.read_bytes() for one in sources}
    info = f"{stem}.dist-info"
    files[f"{info}/LICENSE"] = (folder / "../../../LICENSE").read_bytes()
    files[f"{info}/METADATA"] = metadata.encode() + (folder / "README.md").read_bytes()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: org-api\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = f"{''.join(map(_describe, files.items()))}{info}/RECORD,,\n".encode()
    wheel = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return wheel


def _describe(file):
    path, content = file
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}\n"
