"""HTTP with ETags that shows the version before for some seconds after a put: a replica that lags.

Two may share a store, one fresh and one lagging: `fresh = Lagging(test)`, `late = Lagging(test, store=fresh.store, lag=2.0)`.
Source: RFC 9110, sections 8.8.3 (ETag) and 13.1.2 (If-None-Match).

Covered: GET and HEAD of any path that was put, strong ETags, weak comparison of If-None-Match, 304, 404. Not covered: everything else of HTTP.
"""
import hashlib
import time

try:
    from servers import base
except ImportError:  # run by hand: this folder is where Python looks
    import base

Answer = base.Answer


class Store:
    """path: [(when, bytes or None)], oldest first."""

    def __init__(self):
        self.versions = {}

    def put(self, path, body):
        self.versions.setdefault(path, []).append((time.monotonic(), body.encode() if isinstance(body, str) else body))

    def at(self, path, moment):
        return next((body for when, body in reversed(self.versions.get(path, [])) if when <= moment), None)


class Lagging(base.Server):
    def __init__(self, test=None, port=0, store=None, lag=0.0):
        self.store, self.lag = store or Store(), lag  # seconds; may be changed at any time
        self.frozen = None  # a moment: what is shown is what was there then
        super().__init__(test, port)

    def put(self, path, body):
        """The new version; shown here `lag` seconds later. The ETag it will have. None as the body: the path will be gone."""
        self.store.put(path, body)
        return self.etag(self.store.at(path, time.monotonic()))

    def freeze(self, on=True):
        """Shows what it shows now until it is let go: a lag of which a test decides the end."""
        self.frozen = time.monotonic() - self.lag if on else None

    @staticmethod
    def etag(body):
        return None if body is None else f'"{hashlib.sha256(body).hexdigest()[:16]}"'

    def answer(self, request):
        if request.method not in ('GET', 'HEAD'):
            raise Answer(405, b'', {'Allow': 'GET, HEAD'})
        body = self.store.at(request.path, time.monotonic() - self.lag if self.frozen is None else self.frozen)
        if body is None:
            raise Answer(404, 'not found\n')
        etag = self.etag(body)
        given = [t.strip().removeprefix('W/') for t in (request.headers.get('If-None-Match') or '').split(',')]
        return Answer(304, b'', {'ETag': etag}) if etag in given or '*' in given else Answer(200, body, {'ETag': etag})


if __name__ == '__main__':
    base.main(Lagging, "put /web.yaml 'a: 1'")
