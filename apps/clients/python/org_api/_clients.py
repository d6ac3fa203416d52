from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Awaitable, Callable, Optional, Union, cast

from ._core import ApiResponse, Core, OrgApiError, Outcome, Request, Response, Wait
from ._generated import AsyncReads, Reads
from ._transport import Exchange, send


class OrgApi(Core, Reads):
    __doc__ = f"The reads of the API. Threads may share a client.\n\n{Core.__doc__}"

    def _read(self, path: str, organization_id: str, if_none_match: Optional[str]) -> ApiResponse[Any]:
        steps = self._steps(path, organization_id, if_none_match)
        outcome: Outcome = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = self._clock.sleep(step.seconds) if isinstance(step, Wait) else send(step)
        except StopIteration as end:
            return cast("ApiResponse[Any]", end.value)


class AsyncOrgApi(Core, AsyncReads):
    __doc__ = f"""The reads of the API for asyncio.

    A cancelled call ends its request. ``send`` is another transport, from a request to its response; the default
    runs in a thread. ``clock.sleep`` is a coroutine here.

    {Core.__doc__}"""

    def __init__(
        self,
        key: Optional[str] = None,
        *,
        send: Optional[Callable[[Request], Awaitable[Union[Response, OrgApiError]]]] = None,
        **options: Any,
    ) -> None:
        super().__init__(key, **options)
        self._send = send or _send_in_thread
        self._sleep = options["clock"].sleep if options.get("clock") else asyncio.sleep

    async def _read(self, path: str, organization_id: str, if_none_match: Optional[str]) -> ApiResponse[Any]:
        steps = self._steps(path, organization_id, if_none_match)
        outcome: Outcome = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = await (self._sleep(step.seconds) if isinstance(step, Wait) else self._send(step))
        except StopIteration as end:
            return cast("ApiResponse[Any]", end.value)


async def _send_in_thread(request: Request) -> Union[Response, OrgApiError]:
    exchange = Exchange()
    try:
        return await asyncio.get_running_loop().run_in_executor(None, partial(send, request, exchange))
    except asyncio.CancelledError:
        exchange.end()
        raise
