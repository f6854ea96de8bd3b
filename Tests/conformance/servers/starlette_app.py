"""A server of sse-starlette, for the generic cases of the conformance kit. It passes texts on, and stores nothing."""

import asyncio
import itertools

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

channels = {}
numbers = itertools.count(1)


async def subscribe(request):
    queue = asyncio.Queue()
    channels.setdefault(request.query_params["channel"], set()).add(queue)

    async def events():
        while True:
            yield await queue.get()
    return EventSourceResponse(events(), ping=1)


async def publish(request):
    text = (await request.body()).decode()
    event = ServerSentEvent(data=text, event=request.headers.get("x-event"), id=str(next(numbers)))
    for queue in channels.get(request.query_params["channel"], ()):
        queue.put_nowait(event)
    return Response(status_code=202)


async def ready(_):
    return Response(status_code=204)


app = Starlette(routes=[
    Route("/subscribe", subscribe), Route("/publish", publish, methods=["POST"]), Route("/ready", ready),
])
