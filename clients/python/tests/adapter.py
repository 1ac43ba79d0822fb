"""Makes calls with the client as clients/README.md describes: one command per line of
standard input, one reply per line of standard output. With --async it uses AsyncClient."""

from __future__ import annotations

import asyncio
import base64
import inspect
import io
import json
import ssl
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import islice
from typing import Any

import httpx

import animalstore as a

Command = dict[str, Any]

CERTIFICATES = ssl.create_default_context()


class Session:
    """A client that a command created, with the waits that weren't reported yet."""

    def __init__(self, args: dict[str, Any], kind: type[a.Client] | type[a.AsyncClient]) -> None:
        self.waits: list[object] = []
        self.attempts: list[object] = []
        # Without the proxies of the environment. Reading certificates takes longer than a call.
        new_http = httpx.Client if kind is a.Client else httpx.AsyncClient
        http: Any = new_http(trust_env=False, verify=CERTIFICATES)
        options: dict[str, Any] = {"http_client": http, "on_wait": self.on_wait, "on_attempt": self.on_attempt}
        for name in ("userAgent", "maxAttempts", "pacing"):
            if args.get(name) is not None:
                options[snake(name)] = args[name]
        for name in ("backoffBase", "backoffMax", "maxWait", "attemptTimeout"):
            if args.get(name) is not None:
                options[snake(name)] = args[name] / 1000
        self.http = http
        self.client: Any = kind(args["baseURL"], args["apiKey"], **options)

    def on_wait(self, wait: a.Wait) -> None:
        self.waits.append(
            {
                "operation": camel(wait.operation),
                "attempt": wait.attempt,
                "for": wait.seconds * 1000,
                "reason": describe(wait.reason),
            }
        )

    def on_attempt(self, attempt: a.CallAttempt) -> None:
        self.attempts.append(
            {
                "operation": camel(attempt.operation),
                "method": attempt.method,
                "path": attempt.path,
                "number": attempt.number,
                "status": attempt.status,
                "requestId": attempt.request_id,
                "duration": attempt.seconds * 1000,
            }
        )

    def take_reports(self) -> tuple[list[object], list[object]]:
        reports = self.waits, self.attempts
        self.waits, self.attempts = [], []
        return reports


sessions: dict[str, Session] = {}


def list_of_pets(value: object) -> list[a.NewPet]:
    assert isinstance(value, list)
    return [a.NewPet.from_json(one) for one in value]


INPUTS: dict[str, tuple[str, Callable[[object], object]]] = {
    "createPet": ("pet", a.NewPet.from_json),
    "createPetBatch": ("pets", list_of_pets),
    "importPets": ("pets", list_of_pets),
    "updatePet": ("patch", a.PetPatch.from_json),
    "updateOrder": ("patch", a.OrderPatch.from_json),
    "putCategory": ("category", a.Category.from_json),
    "createKey": ("key", a.NewKey.from_json),
    "updateKey": ("patch", a.KeyPatch.from_json),
    "createWebhook": ("webhook", a.NewWebhook.from_json),
    "updateWebhook": ("patch", a.WebhookPatch.from_json),
    "retryDeliveries": ("which", a.DeliveryRetry.from_json),
}


def snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def arguments(command: Command, meta: a.Meta, cancel: a.CancelToken | None) -> tuple[list[object], dict[str, Any]]:
    """Returns the arguments of a method of the client."""
    args, given = command.get("args") or {}, command.get("options") or {}
    call = command["call"]
    positional: list[object] = [
        args[name] for name in IDS if name in args and call not in ("listOrders", "putCategory")
    ]
    if call == "addPhoto":
        picture = base64.b64decode(args["picture"]) if "picture" in args else bytes(args["size"])
        positional.append(io.BytesIO(picture) if args.get("as") == "stream" else picture)
    if call in INPUTS:
        name, read = INPUTS[call]
        positional.append(read(args[name] * args["times"] if "times" in args else args[name]))
    named: dict[str, Any] = {
        snake(name): value for name, value in {**args.get("query", {}), **args.get("events", {})}.items()
    }
    if "since" in named:
        named["since"] = datetime.fromisoformat(named["since"].replace("Z", "+00:00"))
    for source, target in (
        ("limit", "limit"),
        ("hours", "hours"),
        ("graceSeconds", "grace_seconds"),
        ("type", "event_type"),
        ("salt", "salt"),
        ("reference", "reference"),
        ("note", "note"),
    ):
        if source in args:
            named[target] = args[source]
    for name in ("ifMatch", "ifNoneMatch", "idempotencyKey", "cursor"):
        if given.get(name) is not None:
            named[snake(name)] = given[name]
    if given.get("onePage"):
        named["one_page"] = True
    if given.get("timeout"):
        named["timeout"] = given["timeout"] / 1000
    if cancel:
        named["cancel"] = cancel
    return positional, {**named, "meta": meta}


IDS = ("petId", "petIds", "orderId", "categoryId", "keyId", "webhookId", "deliveryId", "photoId")


def start(command: Command, meta: a.Meta, cancel: a.CancelToken | None) -> Any:
    """Calls a method of the client."""
    if command["call"] == "verifyWebhook":
        args = command["args"]
        return a.webhook.verify(args["secrets"], args["headers"], args["body"].encode(), now=lambda: args["now"])
    client = sessions[command["client"]].client
    if command["call"] == "rateLimit":
        return describe_limit(client.rate_limit)
    positional, named = arguments(command, meta, cancel)
    return getattr(client, snake(command["call"]))(*positional, **named)


def result_of(value: object) -> Any:
    if isinstance(value, list):
        return [result_of(one) for one in value]
    if isinstance(value, tuple):
        events, following = value
        return {"events": result_of(events), "next": following}
    if isinstance(value, a.PetImport):
        return {"pets": result_of(value.pets), "added": value.added, "existing": value.existing}
    if isinstance(value, a.Image):
        return {"contentType": value.content_type, "size": len(value.data)}
    to_json = getattr(value, "to_json", None)
    return to_json() if to_json else value


def describe_limit(limit: a.RateLimit | None) -> object:
    if limit is None:
        return None
    return {"limit": limit.limit, "remaining": limit.remaining, "reset": int(limit.reset.timestamp())}


KINDS: list[tuple[type[BaseException], str]] = [
    (a.NotModifiedError, "notModified"),
    (a.CallCancelledError, "aborted"),
    (asyncio.CancelledError, "aborted"),
    (a.CallTimeoutError, "timeout"),
    (a.RateLimitError, "rateLimit"),
    (a.ServiceError, "service"),
    (a.ResponseError, "response"),
    (a.NetworkError, "network"),
    (a.webhook.WebhookError, "webhook"),
    (ValueError, "invalid"),
    (TypeError, "invalid"),
]


def describe(e: BaseException) -> dict[str, Any]:
    """Returns an error in the form of the protocol."""
    kind = next((name for kind, name in KINDS if isinstance(e, kind)), "adapter")
    text = str(e) if kind != "adapter" else traceback.format_exc()
    described = {"kind": kind, "text": text, "outcomeUnknown": getattr(e, "outcome_unknown", False)}
    for name in ("code", "message", "status", "request_id", "operation", "request", "window", "limit", "reason"):
        value = getattr(e, name, None)
        if value or (name in ("limit", "window") and value is not None):
            described[camel(name)] = value
    if operation := getattr(e, "operation", ""):
        described["operation"] = camel(operation)
        described["text"] = text.replace(operation, camel(operation))
    if isinstance(e, a.AnimalStoreError):
        described["attempts"] = e.attempts
    if isinstance(e, a.RateLimitError):
        described["reset"] = int(e.reset.timestamp()) if e.reset else None
        described["retryAfter"] = e.retry_after * 1000
    return described


def reply(command: Command, meta: a.Meta, result: object, error: BaseException | None) -> None:
    session = sessions.get(command.get("client", ""))
    waits, attempts = session.take_reports() if session else ([], [])
    form: dict[str, Any] = {
        "id": command["id"],
        "result": result_of(result),
        "waits": waits,
        "attempts": attempts,
        "meta": {
            "status": meta.status,
            "etag": meta.etag,
            "requestId": meta.request_id,
            "replayed": meta.replayed,
            "banLifted": meta.ban_lifted,
            "attempts": meta.attempts,
            "nextCursor": meta.next_cursor,
            "rateLimit": describe_limit(meta.rate_limit),
            "age": meta.age,
        },
    }
    if error:
        form["error"] = describe(error)
    with writing:
        print(json.dumps(form), flush=True)


writing = threading.Lock()


def carry_out(command: Command) -> None:
    """Carries out a command with Client."""
    meta, error = a.Meta(), None
    results: list[object] = []
    result: Any = None
    options = command.get("options") or {}
    cancel = a.CancelToken() if options.get("cancelAfter") else None
    if cancel:
        threading.Timer(options["cancelAfter"] / 1000, cancel.cancel).start()
    try:
        if command["call"] == "new":
            sessions[command["client"]] = Session(command["args"], a.Client)
        elif command["call"] == "close":
            sessions.pop(command["client"]).http.close()
        else:
            started = start(command, meta, cancel)
            if isinstance(started, Iterator):
                result = results  # also those before an error
                for entry in islice(started, options.get("take") or None):
                    results.append(entry)
            else:
                result = started
    except BaseException as e:
        error = e
    reply(command, meta, result, error)


async def carry_out_async(command: Command) -> None:
    """Carries out a command with AsyncClient."""
    meta, error = a.Meta(), None
    results: list[object] = []
    result: Any = None
    options = command.get("options") or {}

    # A task that was cancelled can't say whether a change was made, so changes use a token.
    after = options.get("cancelAfter")
    cancel = a.CancelToken() if after and not command["call"].startswith(("get", "list", "events")) else None

    async def call() -> None:
        nonlocal result
        started = start(command, meta, cancel)
        if inspect.isawaitable(started):
            result = await started
        elif not isinstance(started, AsyncIterator):
            result = started
        else:
            result = results
            async for entry in started:
                results.append(entry)
                if len(results) == options.get("take"):
                    break

    try:
        if command["call"] == "new":
            sessions[command["client"]] = Session(command["args"], a.AsyncClient)
        elif command["call"] == "close":
            await sessions.pop(command["client"]).http.aclose()
        else:
            task = asyncio.ensure_future(call())
            if after:
                end = cancel.cancel if cancel else task.cancel
                asyncio.get_running_loop().call_later(after / 1000, end)
            await task
    except BaseException as e:
        error = e
    reply(command, meta, result, error)


async def serve_async() -> None:
    loop = asyncio.get_running_loop()
    running: set[asyncio.Task[None]] = set()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = asyncio.create_task(carry_out_async(json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)


def serve() -> None:
    with ThreadPoolExecutor(max_workers=256) as pool:
        for line in sys.stdin:
            pool.submit(carry_out, json.loads(line))


if __name__ == "__main__":
    if "--async" in sys.argv:
        asyncio.run(serve_async())
    else:
        serve()
