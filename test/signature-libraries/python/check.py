"""Checks captured deliveries with each library: python check.py < captured.jsonl.

The format and the exit codes are in ../README.md.
"""

import base64
import json
import sys

from verify import verify_with_standardwebhooks, verify_with_stripe, verify_with_svix

LIBRARIES = {
    "stripe": verify_with_stripe,
    "standardwebhooks": verify_with_standardwebhooks,
    "svix": verify_with_svix,
}


def main() -> int:
    lines = [line for line in sys.stdin if line.strip()]
    rejected = 0
    for number, line in enumerate(lines, start=1):
        captured = json.loads(line)
        headers = {name.lower(): value for name, value in captured["headers"].items()}
        for library, verify in LIBRARIES.items():
            try:
                verify(base64.b64decode(captured["body"]), headers, captured["secret"])
                print(number, library, "accepted")
            except Exception as error:
                rejected += 1
                print(number, library, "rejected:", (str(error).strip() or type(error).__name__).splitlines()[0])
    return 1 if rejected or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
