"""The extension, for Python 3.10 and all later ones; where it cannot be built, ctypes does its work."""
import os

from setuptools import Extension, setup

LIB = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

setup(
    ext_modules=[Extension("pullet._native", ["pullet/_native.c"], include_dirs=[LIB],
                           library_dirs=[os.path.join(os.path.dirname(LIB), "build")],
                           libraries=["pullet"], define_macros=[("_GNU_SOURCE", None)],
                           extra_compile_args=["-std=c11"], py_limited_api=True, optional=True)],
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
