"""Failure of the embedded stack, told in one sentence with the way out."""


class StackError(Exception):
    """A part of the embedded stack cannot run; the message says why and what to do."""
