from __future__ import annotations

import asyncio
import time
from typing import Any, Optional, Union, cast

from ._core import ApiResponse, Core, OrgApiError, Request, Response
from ._generated import AsyncReads, Reads
from ._transport import Exchange, send


class OrgApi(Core, Reads):
    __doc__ = f"The reads of the API. Threads may share a client.\n\n{Core.__doc__}"

    def _read(self, path: str, organization_id: str, if_none_match: Optional[str]) -> ApiResponse[Any]:
        try:  # a coroutine that waits for nothing ends at its first step
            self._call(path, organization_id, if_none_match).send(None)
        except StopIteration as end:
            return cast("ApiResponse[Any]", end.value)
        raise AssertionError

    async def _exchange(self, request: Request) -> Union[Response, OrgApiError]:
        return send(request)

    async def _wait(self, seconds: float) -> None:
        self._clock.sleep(seconds)


class AsyncOrgApi(Core, AsyncReads):
    __doc__ = f"""The reads of the API for asyncio.

    A request runs in a thread, and a cancelled call ends its request. ``clock.sleep`` is a coroutine here.

    {Core.__doc__}"""

    _read = Core._call

    async def _exchange(self, request: Request) -> Union[Response, OrgApiError]:
        exchange = Exchange()
        try:
            return await asyncio.get_running_loop().run_in_executor(None, send, request, exchange)
        except asyncio.CancelledError:
            exchange.end()
            raise

    async def _wait(self, seconds: float) -> None:
        await (asyncio if self._clock is time else self._clock).sleep(seconds)
