#!/usr/bin/python3
"""A disk that remembers each write: one file, IMAGE, below a mount of FUSE, for a loop device; spoken to over standard input.

Usage: disk_log.py MOUNTPOINT BYTES     (root; speaks FUSE's protocol itself, so it needs /dev/fuse and nothing else)

What was written since the last flush may be on a real disk after a power cut, or not, in blocks of 4 KiB: all that is possible between two
flushes is a subset of these blocks. Commands, a line each, answered by a line of JSON:

  start            what is there now is the beginning of the log
  length           how many entries it has
  save             the power is cut now: keeps the log; of each stretch between flushes [its first entry, its end, how many blocks it wrote]
  restore N WHICH  the disk after N entries of the log that was kept; WHICH of those since the last flush: all, none, a bit for each block in
                   hexadecimal behind 0x, or another word, by which they are drawn. Nothing may be mounted from it meanwhile
"""
import ctypes
import json
import os
import random
import select
import struct
import sys

BLOCK = 4096
EMPTY = bytes(BLOCK)
NAME = b'IMAGE'
LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT = 1, 2, 3, 4, 14, 15, 16, 17, 18, 20, 25, 26
INTERRUPT, DESTROY, BATCH_FORGET = 36, 38, 42
UNANSWERED = (FORGET, BATCH_FORGET, INTERRUPT)
MOST_WRITE = 128 << 10
ENOSYS, ENOENT = 38, 2


def write(blocks, offset, data):
    """Into {number of a block: its bytes}; a block that is not there is empty."""
    at = 0
    while at < len(data):
        block, skip = divmod(offset + at, BLOCK)
        part = data[at:at + BLOCK - skip]
        if len(part) < BLOCK:
            old = blocks.get(block, EMPTY)
            part, at = old[:skip] + part + old[skip + len(part):], at + len(part)
        else:
            at += BLOCK
        blocks[block] = part


def pieces(entries):
    """Those blocks of writes, each by itself."""
    for offset, data in entries:
        for at in range(0, len(data), BLOCK):
            yield offset + at, data[at:at + BLOCK]


def choose(which, index, pick):
    """Whether that block is on the disk."""
    if which.startswith('0x'):
        return int(which, 16) >> index & 1
    return which == 'all' or which != 'none' and pick.random() < 0.5


class Disk:
    """Its blocks, and the log: (offset, data), or None for a flush."""

    def __init__(self, size):
        self.size, self.now, self.begin, self.log, self.saved = size, {}, {}, [], ({}, [])

    def read(self, offset, count):
        first, last = offset // BLOCK, (offset + count - 1) // BLOCK
        data = b''.join(self.now.get(block, EMPTY) for block in range(first, last + 1))
        return data[offset - first * BLOCK:][:count]

    def write(self, offset, data):
        write(self.now, offset, data)
        self.log.append((offset, data))

    def start(self):
        self.begin, self.log = dict(self.now), []
        return len(self.log)

    def save(self):
        self.saved = self.begin, list(self.log)
        ends = [i for i, entry in enumerate(self.log) if entry is None] + [len(self.log)]
        return [[first, end, len(list(pieces(self.log[first:end])))] for first, end in zip([0, *(end + 1 for end in ends)], ends)]

    def restore(self, upto, which):
        begin, log = self.saved
        self.now, flushed, pick = dict(begin), max((i for i in range(upto) if log[i] is None), default=0), random.Random(which)
        for entry in log[:flushed]:
            if entry:
                write(self.now, *entry)
        for i, (offset, data) in enumerate(pieces(filter(None, log[flushed:upto]))):
            if choose(which, i, pick):
                write(self.now, offset, data)
        return self.start()

    def command(self, line):
        word, *rest = line.split()
        if word == 'restore':
            return self.restore(int(rest[0]), rest[1])
        return {'start': self.start, 'save': self.save, 'length': lambda: len(self.log)}[word]()


def attributes(node, size):
    mode = 0o40755 if node == 1 else 0o100600
    return struct.pack('<6Q10I', node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, BLOCK, 0)


class Server:
    def __init__(self, place, size):
        self.disk = Disk(size)
        self.fd = os.open('/dev/fuse', os.O_RDWR | os.O_CLOEXEC)
        options = f'fd={self.fd},rootmode=40000,user_id=0,group_id=0'.encode()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b'disk_log', place.encode(), b'fuse', 6, options):  # nosuid, nodev
            raise OSError(ctypes.get_errno(), 'mount: ' + os.strerror(ctypes.get_errno()))

    def entry(self, node):
        return struct.pack('<QQQQII', node, 0, 3600, 3600, 0, 0) + attributes(node, self.disk.size)

    def answer(self, code, node, body):
        """(error, bytes)"""
        size = self.disk.size
        if code == INIT:
            major, minor, ahead, flags = struct.unpack_from('<4I', body)
            return 0, struct.pack('<4IHHIIHHI7I', 7, min(minor, 31), ahead, flags & (1 << 5 | 1 << 22), 16, 12, MOST_WRITE, 1, 32, 0, 0, *[0] * 7)
        if code == LOOKUP:
            return (0, self.entry(2)) if body.rstrip(b'\0') == NAME else (ENOENT, b'')
        if code in (GETATTR, SETATTR):
            return 0, struct.pack('<QII', 3600, 0, 0) + attributes(node, size if node == 2 else 0)
        if code == OPEN:
            return 0, struct.pack('<QII', 0, 0, 0)
        if code == READ:
            _, offset, count = struct.unpack_from('<QQI', body)
            return 0, self.disk.read(offset, count)
        if code == WRITE:
            _, offset, count = struct.unpack_from('<QQI', body)
            self.disk.write(offset, body[40:40 + count])
            return 0, struct.pack('<II', count, 0)
        if code == FSYNC:
            self.disk.log.append(None)
            return 0, b''
        if code == STATFS:
            return 0, struct.pack('<5Q4I6I', size // BLOCK, 0, 0, 1, 1, BLOCK, 255, BLOCK, 0, *[0] * 6)
        return (0, b'') if code in (RELEASE, FLUSH, DESTROY) else (ENOSYS, b'')

    def serve(self):
        request = os.read(self.fd, MOST_WRITE + 65536)
        _, code, unique, node = struct.unpack_from('<IIQQ', request)
        if code in UNANSWERED:
            return
        error, data = self.answer(code, node, request[40:])
        os.write(self.fd, struct.pack('<IiQ', 16 + len(data), -error, unique) + data)

    def run(self):
        """Until the file system is gone, or standard input ends."""
        while True:
            ready = select.select([self.fd, 0], [], [])[0]
            if self.fd in ready:
                try:
                    self.serve()
                except OSError as e:
                    if e.errno == 19:  # unmounted
                        return
                    if e.errno not in (2, 4):  # a request that was interrupted
                        raise
            elif 0 in ready:
                line = sys.stdin.readline()
                if not line:
                    return
                print(json.dumps(self.disk.command(line)), flush=True)


if __name__ == '__main__':
    server = Server(sys.argv[1], int(sys.argv[2]))
    print('ready', flush=True)
    server.run()
