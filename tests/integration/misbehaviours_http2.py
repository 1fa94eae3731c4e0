"""What servers do wrong over HTTP/2: for each kind a function of the stream's number that gives the steps, and what the status says of it.

A row is as in misbehaviours.py. In the rows of LENGTHLESS the answer has no length: it is asked for again over HTTP/1.1.
"""
import struct

from misbehaviours import CUT_OFF, GONE, LATE, LONG, MEND, SHORT
from servers import http2
from servers.http2 import ACK, END_HEADERS, END_STREAM, data, fields, frame, goaway, headers, reset, text, whole
from servers.wire import CLOSE, CUT, HOLD, RESET

FIFTY = 'content-length', '50'
BROKEN = f'HTTP/2.*{MEND}|HTTP2.*{MEND}|nghttp2.*{MEND}|tried 5 times|' + GONE


def flood(unit, *begin):
    """16 KiB each few milliseconds, two megabytes in all."""
    return [*begin, *[unit * (16384 // len(unit) + 1), .005] * 128, HOLD]


def settings(number, value):
    return frame(http2.SETTINGS, 0, 0, struct.pack('>HI', number, value))


def silent(steps):
    return steps, 'timeout', LATE


def broken(steps, cause='unreachable'):
    return steps, cause, BROKEN


ROWS = {
    'no answer': silent(lambda s: [HOLD]),
    'a head only': silent(lambda s: [headers(s, FIFTY), HOLD]),
    'half of a body': silent(lambda s: [headers(s, FIFTY) + data(s, SHORT), HOLD]),
    'a body a letter at a time': silent(lambda s: [headers(s, ('content-length', '999')), *[data(s, b'#'), .05] * 200]),
    'empty frames one at a time': silent(lambda s: [headers(s, FIFTY), *[data(s, b''), .05] * 200]),
    'pings, and no answer': silent(lambda s: [frame(http2.PING, 0, 0, b'x' * 8), .05] * 200),
    'early hints, and nothing': silent(lambda s: [headers(s, status='103'), HOLD]),
    'no streams any more': silent(lambda s: [settings(3, 0), HOLD]),
    'a farewell, and no answer': silent(lambda s: [goaway(s, 0), HOLD]),
    'a flood of pings': silent(lambda s: flood(frame(http2.PING, 0, 0, b'x' * 8))),
    'a flood of empty frames': silent(lambda s: flood(data(s, b''), headers(s, FIFTY))),
    'a flood of windows': silent(lambda s: flood(frame(http2.WINDOW_UPDATE, 0, 0, struct.pack('>I', 1)))),
    'a flood of priorities': silent(lambda s: flood(frame(http2.PRIORITY, 0, s, struct.pack('>IB', 0, 1)))),
    'a flood of frames nobody knows': silent(lambda s: flood(frame(0x77, 0, 0, b'x' * 100))),
    **{f'a reset of the stream, {name}': broken(lambda s, code=code: [reset(s, code), HOLD])
       for name, code in (('NO_ERROR', 0), ('INTERNAL_ERROR', 2), ('REFUSED_STREAM', 7), ('CANCEL', 8), ('ENHANCE_YOUR_CALM', 11))},
    'a reset behind the head': broken(lambda s: [headers(s, FIFTY), .05, reset(s, 0), HOLD]),
    'a reset in the body, NO_ERROR': (lambda s: [headers(s, FIFTY) + data(s, SHORT), .05, reset(s, 0), HOLD], 'unreachable', CUT_OFF),
    'a reset in the body, INTERNAL_ERROR': broken(lambda s: [headers(s, FIFTY) + data(s, SHORT), .05, reset(s, 2), HOLD]),
    'a flood of resets': broken(lambda s: flood(reset(s, 0))),
    'the end at once': (lambda s: [CLOSE], 'unreachable', CUT_OFF),
    'the end in the body': (lambda s: [headers(s, FIFTY) + data(s, SHORT), CLOSE], 'unreachable', CUT_OFF),
    'the end in the body, without a farewell': (lambda s: [headers(s, FIFTY) + data(s, SHORT), .05, CUT], 'unreachable', CUT_OFF),
    'the connection is reset': broken(lambda s: [RESET]),
    'a farewell at once': broken(lambda s: [goaway(0, 0), CLOSE]),
    'a farewell with an error': broken(lambda s: [goaway(0, 11, b'calm'), HOLD]),
    'a body that is short': broken(lambda s: [headers(s, FIFTY) + data(s, SHORT, END_STREAM), HOLD]),
    'a body that is long': broken(lambda s: [headers(s, ('content-length', '5')) + data(s, LONG, END_STREAM), HOLD]),
    'two lengths': broken(lambda s: [headers(s, ('content-length', '5'), FIFTY) + data(s, SHORT, END_STREAM), HOLD]),
    'a negative length': broken(lambda s: [headers(s, ('content-length', '-5')) + data(s, SHORT, END_STREAM), HOLD]),
    'a length, and no body': broken(lambda s: [headers(s, FIFTY, flags=END_HEADERS | END_STREAM), HOLD]),
    'a flood of settings': broken(lambda s: flood(settings(3, 100))),
    'a flood of acknowledgements': broken(lambda s: flood(frame(http2.SETTINGS, ACK))),
    'a flood of continuations': broken(lambda s: flood(frame(http2.CONTINUATION, 0, s, fields(('x', 'y' * 100))), headers(s, flags=0))),
    'a flood of interim answers': broken(lambda s: flood(headers(s, status='103'))),
    'headers of a megabyte': broken(lambda s: [headers(s, flags=0), *[frame(http2.CONTINUATION, 0, s, fields(('x', 'y' * 16000)))] * 64,
                                               frame(http2.CONTINUATION, END_HEADERS, s) + data(s, SHORT, END_STREAM), HOLD]),
    'headers that unpack to 48 MB': broken(lambda s: [frame(http2.HEADERS, END_HEADERS, s, fields((':status', '200')) + b'\x40' + text('x') + text('y' * 4000) + b'\xbe' * 12000) +
                                                      data(s, SHORT, END_STREAM), HOLD]),
    'headers that are packed wrongly': broken(lambda s: [frame(http2.HEADERS, END_HEADERS, s, b'\xff' * 100), HOLD]),
    'trailers with a length': broken(lambda s: [headers(s, ('content-length', '5')) + data(s, SHORT) + frame(http2.HEADERS, END_HEADERS | END_STREAM, s, fields(FIFTY)), HOLD]),
    'a promise of another answer': broken(lambda s: [frame(http2.PUSH_PROMISE, END_HEADERS, s, struct.pack('>I', 2) + fields((':method', 'GET'), (':path', '/x'))), HOLD]),
    'a body without a head': broken(lambda s: [data(s, SHORT, END_STREAM), HOLD]),
    'a body of the connection': broken(lambda s: [data(0, SHORT), HOLD]),
    'an answer of another stream': broken(lambda s: [whole(s + 98, SHORT), HOLD]),
    'an answer of a stream of the server': broken(lambda s: [whole(2, SHORT), HOLD]),
    'a frame of 16 MiB': broken(lambda s: [b'\xff\xff\xff' + frame(http2.DATA, 0, s)[3:], b'x' * 100000, HOLD]),
    'HTTP/1.1 all the same': broken(lambda s: [b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n' + SHORT, HOLD]),
    'no status': broken(lambda s: [frame(http2.HEADERS, END_HEADERS, s, fields(('content-length', '5'))) + data(s, SHORT, END_STREAM), HOLD]),
    **{f'the status {status}': broken(lambda s, status=status: [whole(s, SHORT, status=status), HOLD]) for status in ('abc', '20', '2000', '+20', '101')},
    'a second status': broken(lambda s: [whole(s, SHORT, (':status', '404')), HOLD]),
    'a name in capitals': broken(lambda s: [whole(s, SHORT, ('X-Y', 'z')), HOLD]),
    'a NUL in a header': broken(lambda s: [whole(s, SHORT, ('x', b'a\0b')), HOLD]),
    'a new line in a header': broken(lambda s: [whole(s, SHORT, ('x', b'a\r\ncontent-length: 3')), HOLD]),
    'chunks': broken(lambda s: [headers(s, ('transfer-encoding', 'chunked')) + data(s, b'5\r\n' + SHORT + b'\r\n0\r\n\r\n', END_STREAM), HOLD]),
    'a 304 with a body': broken(lambda s: [headers(s, ('etag', '"1"'), status='304') + data(s, SHORT, END_STREAM), HOLD]),
    'a window that is too large': broken(lambda s: [frame(http2.WINDOW_UPDATE, 0, 0, b'\x7f\xff\xff\xff') * 2, HOLD]),
    'frames of at most a byte': broken(lambda s: [settings(5, 1), HOLD]),
    'a 404': (lambda s: [whole(s, SHORT, status='404')], 'not found', '404'),
    'a 503': (lambda s: [whole(s, SHORT, status='503')], 'overloaded', '503'),
    'a 206': (lambda s: [whole(s, SHORT, status='206')], 'bad answer', '206'),
    'a 200 that is a part': (lambda s: [whole(s, SHORT, ('content-range', 'bytes 0-4/50'))], 'bad answer', 'part only'),
    'an empty body': (lambda s: [whole(s, b'')], 'empty', 'empty'),
    'a body without end': (lambda s: [headers(s, ('content-length', '99999999')), *[data(s, b'#' * 16384)] * 300, HOLD], 'bad answer', 'larger than the limit'),
}
LENGTHLESS = {
    'it ends': lambda s: [headers(s) + data(s, SHORT, END_STREAM)],
    'it goes on': lambda s: [headers(s) + data(s, SHORT), HOLD],
    'a reset in the body': lambda s: [headers(s) + data(s, SHORT), .1, reset(s, 0), HOLD],
    'a farewell in the body': lambda s: [headers(s) + data(s, SHORT), .1, goaway(s, 0), CLOSE],
    'an end in the body': lambda s: [headers(s) + data(s, SHORT), .1, CUT],
}
