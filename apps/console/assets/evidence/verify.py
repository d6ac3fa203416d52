"""Verifies an evidence package, offline: python3 verify.py [FOLDER] [ANCHORS]

Needs Python 3.8 or newer, and nothing else. README.txt says what the result means, and verify.mjs
has the form of the lines.
"""
import hashlib
import json
import os
import re
import sys

folder = sys.argv[1] if len(sys.argv) > 1 else "."
anchors_file = sys.argv[2] if len(sys.argv) > 2 else None
faults = 0


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def read(file):
    with open(os.path.join(folder, file), "rb") as opened:
        return opened.read()


def read_lines(content):
    return [line for line in content.split(b"\n") if line != b""]


def from_hex(text):
    try:
        return bytes.fromhex(text.decode("ascii"))
    except ValueError:
        return b""


def fault(text):
    global faults
    faults += 1
    print("NOT INTACT:", text)


manifest = json.loads(read("manifest.json").decode("utf-8"))
anchors = [(one["month"], one["position"], one["hash"], "manifest.json") for one in manifest["anchors"]]
if anchors_file is not None:
    with open(anchors_file, "rb") as opened:
        # An email may break its lines with "=", and has a text twice.
        joined = re.sub(rb"=\r?\n", b"", opened.read())
    found = dict.fromkeys(re.findall(rb"\b[0-9]{4}-[0-9]{2} [0-9]+ [0-9a-f]{64}\b", joined))
    if not found:
        fault(f"{anchors_file} has no anchor: month, position and hash")
    for anchor in found:
        month, position, anchor_hash = anchor.decode("ascii").split(" ")
        anchors.append((month, int(position), anchor_hash, anchors_file))

for one in manifest["files"]:
    if sha256(read(one["file"])).hex() != one["sha256"]:
        fault(f"{one['file']} is not the file that manifest.json names")

compared = set()
for chain in manifest["months"]:
    names = {}
    for number, line in enumerate(read_lines(read(chain["names"])), 1):
        position, salt, text = (line.split(b"\t") + [b"", b""])[:3]
        if position in names:
            fault(f"{chain['names']}, line {number}: position {position.decode('latin-1')} is there twice")
        names[position] = (number, sha256(from_hex(salt), text).hex())
    start = sha256(f"audit log {manifest['organizationId']} {chain['month']}".encode()).hex()
    if chain["from"] == 1 and start != chain["hashBefore"]:
        fault(f"{chain['month']} does not begin as a log of this organization")
    state, at, is_broken = bytes.fromhex(chain["hashBefore"]), chain["from"] - 1, False
    for number, line in enumerate(read_lines(read(chain["log"])), 1):
        parts = line.split(b"\t")
        stated, given, entry = (parts + [b"", b""])[:3]
        state, at = sha256(state, sha256(entry)), at + 1
        if stated != str(at).encode() or given != state.hex().encode() or len(parts) > 3:
            fault(f"{chain['log']}, line {number} (position {at}): changed, removed, added or moved")
            is_broken = True
            break
        named = names.pop(stated, None)
        if named is not None and not entry.endswith(f'"{named[1]}"]'.encode()):
            fault(f"{chain['names']}, line {named[0]}: not the names of the entry at position {at}")
        for anchor in anchors:
            if anchor[0] == chain["month"] and anchor[1] == at:
                compared.add(anchor)
                if anchor[2] != state.hex():
                    fault(f"{chain['month']}, position {at}: differs from the anchor of {anchor[3]}")
    if is_broken:
        continue
    if at != chain["to"] or state.hex() != chain["hashAfter"]:
        fault(f"{chain['log']} ends at position {at}, and not as manifest.json says: its last lines were changed")
    for position, (number, _) in names.items():
        fault(f"{chain['names']}, line {number}: there is no entry at position {position.decode('latin-1')}")
    print(f"{chain['month']}: positions {chain['from']} to {at}, end {state.hex()}")
print(f"anchors compared: {len(compared)}, of other months or positions: {len(set(anchors)) - len(compared)}")
print(f"manifest.json: {sha256(read('manifest.json')).hex()}")
print("INTACT" if faults == 0 else f"NOT INTACT: {faults} fault{'' if faults == 1 else 's'}")
sys.exit(0 if faults == 0 else 1)
