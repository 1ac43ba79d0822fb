"""Runs calls, either in the calling thread or in an asyncio event loop."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any, TypeVar

import httpx

from ._core import NOT_IN_TIME, Exchange, Lost, Pause, Steps
from ._response import MAX_RESPONSE, Received

T = TypeVar("T")

LIMITS = httpx.Limits(
    max_connections=None,
    max_keepalive_connections=64,
    # Shorter than the server's timeout, so that no request is sent on a connection that
    # the server is about to close.
    keepalive_expiry=45.0,
)


class Runner:
    """Runs calls with blocking functions."""

    def __init__(self, http_client: httpx.Client | None) -> None:
        self._owned = http_client is None
        self.http = http_client or httpx.Client(limits=LIMITS)

    def close(self) -> None:
        if self._owned:
            self.http.close()

    def run(self, steps: Steps[T]) -> T:
        outcome: Received | Lost | None = None
        try:
            while True:
                step = steps.send(outcome)
                if isinstance(step, Exchange):
                    outcome = self._exchange(step)
                else:
                    outcome = None
                    self._pause(step)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    def _pause(self, pause: Pause) -> None:
        woken = threading.Event()
        with listening(pause, woken):
            woken.wait(min(pause.seconds, threading.TIMEOUT_MAX))

    def _exchange(self, exchange: Exchange) -> Received | Lost:
        cancel = exchange.cancel
        if cancel is None:
            return self._send(exchange)
        # Nothing can interrupt a thread that waits for a response. So another one waits,
        # and a call that is cancelled leaves it behind.
        ended = threading.Event()
        outcome: Future[Received | Lost] = Future()
        outcome.add_done_callback(lambda _: ended.set())

        def work() -> None:
            try:
                outcome.set_result(self._send(exchange))
            except BaseException as e:
                outcome.set_exception(e)

        with cancel.listening(ended.set):
            threading.Thread(target=work, name="animalstore-call", daemon=True).start()
            ended.wait()
        return outcome.result() if outcome.done() else Lost(None)

    def _send(self, exchange: Exchange) -> Received | Lost:
        deadline = time.monotonic() + exchange.timeout
        request = request_of(exchange)
        try:
            response = self.http.send(request, stream=True, auth=None, follow_redirects=False)
        except httpx.RequestError as e:
            return lost(e)
        got = Received(response.status_code, response.headers, b"")
        # A timeout of httpx is for each read. The body gets what is left of the time.
        request.extensions["timeout"]["read"] = max(deadline - time.monotonic(), 0.001)
        try:
            for chunk in response.iter_bytes():
                got.body += chunk
                if too_large(got):
                    break
                if time.monotonic() > deadline:
                    got.broken, got.timed_out = NOT_IN_TIME, True
                    break
        except httpx.TimeoutException:
            got.broken, got.timed_out = NOT_IN_TIME, True
        except httpx.RequestError as e:
            got.broken = describe(e)
        finally:
            response.close()
        return got


class AsyncRunner:
    """Runs calls in an asyncio event loop."""

    def __init__(self, http_client: httpx.AsyncClient | None) -> None:
        self._owned = http_client is None
        self.http = http_client or httpx.AsyncClient(limits=LIMITS)

    async def aclose(self) -> None:
        if self._owned:
            await self.http.aclose()

    async def run(self, steps: Steps[T]) -> T:
        outcome: Received | Lost | None = None
        try:
            while True:
                step = steps.send(outcome)
                if isinstance(step, Exchange):
                    outcome = await self._exchange(step)
                else:
                    outcome = None
                    await self._pause(step)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    async def _pause(self, pause: Pause) -> None:
        woken = Alarm()
        with listening(pause, woken):
            await asyncio.wait({woken.future}, timeout=pause.seconds)

    async def _exchange(self, exchange: Exchange) -> Received | Lost:
        woken = Alarm()
        sending = asyncio.ensure_future(self._send(exchange))
        try:
            with ExitStack() as stack:
                if exchange.cancel:
                    stack.enter_context(exchange.cancel.listening(woken.set))
                ending: set[asyncio.Future[Any]] = {sending, woken.future}
                await asyncio.wait(ending, timeout=exchange.timeout, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                return sending.result()
            return Lost(None, timed_out=not woken.future.done())
        finally:
            if not sending.done():
                sending.cancel()
                await asyncio.wait({sending})

    async def _send(self, exchange: Exchange) -> Received | Lost:
        try:
            response = await self.http.send(request_of(exchange), stream=True, auth=None, follow_redirects=False)
        except httpx.RequestError as e:
            return lost(e)
        got = Received(response.status_code, response.headers, b"")
        try:
            async for chunk in response.aiter_bytes():
                got.body += chunk
                if too_large(got):
                    break
        except httpx.RequestError as e:
            got.broken = describe(e)
        finally:
            await response.aclose()
        return got


class Alarm:
    """Wakes a task of the event loop, from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self._loop.create_future()

    def set(self) -> None:
        self._loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


def listening(pause: Pause, woken: threading.Event | Alarm) -> ExitStack:
    """Sets `woken` when a pause is to end early."""
    stack = ExitStack()
    if pause.cancel:
        stack.enter_context(pause.cancel.listening(woken.set))
    if pause.gate:
        stack.enter_context(pause.gate.listening(woken.set, pause.version))
    return stack


def request_of(exchange: Exchange) -> httpx.Request:
    """Creates the request itself, so that it has no headers or cookies of the httpx client."""
    timeout = httpx.Timeout(exchange.timeout).as_dict()
    return httpx.Request(
        exchange.method,
        exchange.url,
        headers=dict(exchange.headers),
        content=exchange.content,
        extensions={"timeout": timeout},
    )


def too_large(got: Received) -> bool:
    if len(got.body) <= MAX_RESPONSE:
        return False
    got.body = got.body[:MAX_RESPONSE]
    got.too_large, got.broken = True, "the body is larger than 16 MiB"
    return True


UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.ProxyError)


def lost(e: httpx.RequestError) -> Lost:
    return Lost(
        e,
        timed_out=isinstance(e, httpx.TimeoutException),
        unsent=isinstance(e, UNSENT),
        permanent=isinstance(e, (httpx.UnsupportedProtocol, httpx.LocalProtocolError)) or is_permanent(e),
    )


def is_permanent(e: BaseException | None) -> bool:
    """Whether a retry would fail in the same way: a certificate that isn't valid, a server
    without TLS, or a host that doesn't exist."""
    while e is not None:
        if isinstance(e, socket.gaierror):
            return e.errno == socket.EAI_NONAME
        if isinstance(e, ssl.SSLError):
            return isinstance(e, ssl.SSLCertVerificationError) or e.reason == "WRONG_VERSION_NUMBER"
        e = e.__cause__ or e.__context__
    return False


def describe(e: Exception) -> str:
    return str(e) or type(e).__name__
