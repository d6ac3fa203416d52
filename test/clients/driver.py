"""Drives the Python client for python-driver.ts: JSON lines in and out. The mode is sync or async."""

import asyncio
import json
import signal
import sys
import traceback

mode, source = sys.argv[1:]
sys.path.insert(0, source)

import org_api  # noqa: E402


def exchange(message):
    print(json.dumps(message), flush=True)
    return json.loads(sys.stdin.readline())


class Clock:
    """Time that only waits move. The test hears of each wait, and says when it has passed."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        exchange({"wait": seconds})
        self.now += seconds


class AsyncClock(Clock):
    async def sleep(self, seconds):
        Clock.sleep(self, seconds)
        if has_real_waits:
            await asyncio.sleep(seconds)


def describe(response):
    limit = response.rate_limit
    return {
        "data": response.data,
        "isUnchanged": response.is_unchanged,
        "etag": response.etag,
        "requestId": response.request_id,
        "rateLimit": limit and limit._asdict(),
        "keyExpires": response.key_expires,
    }


def describe_error(error):
    printed.append(repr(error))
    # What tools that report errors collect: the local variables of every frame.
    printed.extend(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    names = {"code": error.code, "status": error.status, "requestId": error.request_id}
    return {"error": {**names, "retryAfterSeconds": error.retry_after, "message": str(error)}}


async def run_until_ended(read, arguments):
    task = asyncio.ensure_future(read(**arguments))
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, task.cancel)
    return await task


def call(read, arguments):
    try:
        result = asyncio.run(run_until_ended(read, arguments)) if mode == "async" else read(**arguments)
    except org_api.OrgApiError as error:
        return describe_error(error)
    except asyncio.CancelledError:
        return {"hasEnded": True}
    return describe(result)


printed = []
settings = json.loads(sys.stdin.readline())
has_real_waits = settings.pop("has_real_waits")
if settings.pop("has_cache"):
    settings["cache"] = {}
try:
    client_class, clock = (org_api.AsyncOrgApi, AsyncClock()) if mode == "async" else (org_api.OrgApi, Clock())
    client = client_class(clock=clock, **settings)
except ValueError as error:
    print(json.dumps({"failed": str(error)}), flush=True)
    sys.exit()
request = exchange({"ready": True})
while True:
    if "name" in request:
        arguments = {"organization_id": request["organization"]}
        if request["tag"] is not None:
            arguments["if_none_match"] = request["tag"]
        request = exchange({"result": call(getattr(client, request["name"]), arguments)})
    else:
        shown = [repr(client), str(client), repr(vars(client)), *printed]
        request = exchange({"result": "\n".join(shown)})
