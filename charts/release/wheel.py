"""Writes the wheel of a package of pure Python, with the same bytes each time: wheel.py FOLDER OUT.

By the standard library alone, so that a release needs no package of the index. FOLDER has pyproject.toml, LICENSE
and README.md.
"""

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

folder, out = map(Path, sys.argv[1:])
project = (folder / "pyproject.toml").read_text("utf-8")


def read(name):
    return re.search(rf'^{name} = "(.+)"$', project, re.MULTILINE)[1]


name, version = read("name"), read("version")
stem = f"{name.replace('-', '_')}-{version}"
metadata = f"""Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {read("description")}
License: Apache-2.0
Requires-Python: {read("requires-python")}
Description-Content-Type: text/markdown

"""
files = {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.glob("org_api*/*")) if one.is_file()}
files[f"{stem}.dist-info/LICENSE"] = (folder / "LICENSE").read_bytes()
files[f"{stem}.dist-info/METADATA"] = metadata.encode() + (folder / "README.md").read_bytes()
files[f"{stem}.dist-info/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: org-api\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
record = "".join(
    f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()},{len(content)}\n"
    for path, content in files.items()
)
files[f"{stem}.dist-info/RECORD"] = f"{record}{stem}.dist-info/RECORD,,\n".encode()
with zipfile.ZipFile(out / f"{stem}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
    for path, content in files.items():
        entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
        entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
        wheel.writestr(entry, content)
(folder / "PKG-INFO").write_bytes(files[f"{stem}.dist-info/METADATA"])
print(stem)
