"""Runs a command behind a kernel that knows no IPv6, as one started with ipv6.disable=1: a socket of that family is refused.

Usage: tests/no_ipv6.py COMMAND [ARG...]     (x86-64 and arm64; root, or with no new privileges)
"""
import ctypes
import errno
import os
import platform
import socket
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, IS, RETURN, ALLOW, ERRNO = 0x20, 0x15, 0x06, 0x7fff0000, 0x00050000
SOCKET = {'x86_64': 41, 'aarch64': 198}[platform.machine()]
# (code, how far to go on if it is so, if not, operand): the number of the call, then its first argument
FILTER = ((LOAD, 0, 0, 0), (IS, 0, 3, SOCKET), (LOAD, 0, 0, 16), (IS, 0, 1, socket.AF_INET6), (RETURN, 0, 0, ERRNO | errno.EAFNOSUPPORT), (RETURN, 0, 0, ALLOW))


class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_char_p)]


def main(command):
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(FILTER), b''.join(struct.pack('HBBI', *row) for row in FILTER))
    if os.geteuid() != 0:
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        sys.exit(f'no_ipv6.py: {os.strerror(ctypes.get_errno())}')
    os.execvp(command[0], command)


main(sys.argv[1:])
