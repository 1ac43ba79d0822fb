"""Runs calls, either in the calling thread or in an asyncio event loop."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import httpx

from ._core import NOT_IN_TIME, Close, Exchange, Lost, Opened, Pause, Read, Steps
from ._headers import media_type
from ._options import CancelToken
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
        outcome: Received | Lost | Opened | bytes | None = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = None
                if isinstance(step, Exchange):
                    outcome = self._exchange(step)
                elif isinstance(step, Read):
                    outcome = step.stream.read(step.timeout, step.cancel)
                elif isinstance(step, Close):
                    step.stream.close()
                else:
                    self._pause(step)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    def _pause(self, pause: Pause) -> None:
        woken = threading.Event()
        with listening(pause, woken):
            woken.wait(min(pause.seconds, threading.TIMEOUT_MAX))

    def _exchange(self, exchange: Exchange) -> Received | Lost | Opened:
        cancel = exchange.cancel
        if cancel is None:
            return self._send(exchange)
        # Nothing can interrupt a thread that waits for a response. So another one waits,
        # and a call that is cancelled leaves it behind.
        ended = threading.Event()
        outcome: Future[Received | Lost | Opened] = Future()
        outcome.add_done_callback(lambda _: ended.set())

        def work() -> None:
            try:
                outcome.set_result(self._send(exchange))
            except BaseException as e:
                outcome.set_exception(e)

        with cancel.listening(ended.set):
            threading.Thread(target=work, name="animalstore-call", daemon=True).start()
            ended.wait()
        if outcome.done():
            return outcome.result()
        outcome.add_done_callback(discard)
        return Lost(None)

    def _send(self, exchange: Exchange) -> Received | Lost | Opened:
        deadline = time.monotonic() + exchange.timeout
        request = request_of(exchange)
        try:
            response = self.http.send(request, stream=True, auth=None, follow_redirects=False)
        except httpx.RequestError as e:
            return lost(e)
        got = Received(response.status_code, response.headers, b"")
        if is_stream(exchange, got):
            request.extensions["timeout"]["read"] = None
            return Opened(got, Stream(response))
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
        outcome: Received | Lost | Opened | bytes | None = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = None
                if isinstance(step, Exchange):
                    outcome = await self._exchange(step)
                elif isinstance(step, Read):
                    outcome = await step.stream.read(step.timeout, step.cancel)
                elif isinstance(step, Close):
                    await step.stream.close()
                else:
                    await self._pause(step)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    async def _pause(self, pause: Pause) -> None:
        woken = Alarm()
        with listening(pause, woken):
            await asyncio.wait({woken.future}, timeout=pause.seconds)

    async def _exchange(self, exchange: Exchange) -> Received | Lost | Opened:
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

    async def _send(self, exchange: Exchange) -> Received | Lost | Opened:
        request = request_of(exchange)
        try:
            response = await self.http.send(request, stream=True, auth=None, follow_redirects=False)
        except httpx.RequestError as e:
            return lost(e)
        got = Received(response.status_code, response.headers, b"")
        if is_stream(exchange, got):
            request.extensions["timeout"]["read"] = None
            return Opened(got, AsyncStream(response))
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


class Stream:
    """A response that is read as it arrives. Another thread reads it, because nothing can
    interrupt one that waits."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._chunks: SimpleQueue[bytes | None] = SimpleQueue()
        self._taken = threading.Semaphore(0)
        self._closed = False
        threading.Thread(target=self._work, name="animalstore-stream", daemon=True).start()

    def _work(self) -> None:
        with suppress(httpx.HTTPError, httpx.StreamError, OSError):
            for chunk in self._response.iter_bytes():
                self._chunks.put(chunk)
                self._taken.acquire()
                if self._closed:
                    break
        self._chunks.put(b"")
        self._response.close()

    def read(self, timeout: float, cancel: CancelToken | None) -> bytes | None:
        with ExitStack() as stack:
            if cancel:
                stack.enter_context(cancel.listening(lambda: self._chunks.put(None)))
            try:
                chunk = self._chunks.get(timeout=timeout)
            except Empty:
                return None
        self._taken.release()
        return chunk

    def close(self) -> None:
        self._closed = True
        self._taken.release()
        connection = self._response.extensions.get("network_stream")
        waiting = connection.get_extra_info("socket") if connection else None
        if waiting:
            with suppress(OSError):
                waiting.shutdown(socket.SHUT_RDWR)  # wakes the thread


class AsyncStream:
    """A response that is read as it arrives."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._chunks = response.aiter_bytes()

    async def read(self, timeout: float, cancel: CancelToken | None) -> bytes | None:
        woken = Alarm()
        reading = asyncio.ensure_future(anext(self._chunks, b""))
        try:
            with ExitStack() as stack:
                if cancel:
                    stack.enter_context(cancel.listening(woken.set))
                ending: set[asyncio.Future[Any]] = {reading, woken.future}
                await asyncio.wait(ending, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                return None
            try:
                return reading.result()
            except httpx.HTTPError:
                return b""
        finally:
            if not reading.done():
                reading.cancel()
                await asyncio.wait({reading})

    async def close(self) -> None:
        await self._response.aclose()


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


def is_stream(exchange: Exchange, got: Received) -> bool:
    return exchange.stream and got.status == 200 and media_type(got.headers) == "text/event-stream"


def discard(outcome: Future[Received | Lost | Opened]) -> None:
    """Closes a stream that was opened after its caller had left."""
    if not outcome.exception() and isinstance(opened := outcome.result(), Opened):
        opened.stream.close()


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
