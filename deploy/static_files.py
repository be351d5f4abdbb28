"""Static files under ASGI: WhiteNoise's files, compressed variants, ETags and cache headers, sent without a thread.

WhiteNoise answers with a file that Django reads step by step in a thread, and as a synchronous middleware it costs
every other request two hops. Our files are small: they are read at once, and asynchronous requests stay so.
"""

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # the library has no types
    """WhiteNoise's middleware, also asynchronous."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._answer(request)
        return super().__call__(request)

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        answer = super().__call__(request)
        return answer if isinstance(answer, HttpResponse) else await answer

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        """The whole file, or what `Range` asks of it."""
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file:
                content = found.file.read()
        response = HttpResponse(content, status=int(found.status))
        del response["Content-Type"]  # where WhiteNoise names none there is none
        for name, value in found.headers:
            response[name] = value
        return response
