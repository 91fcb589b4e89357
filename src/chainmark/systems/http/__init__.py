"""Any HTTP API: what is asked, and what a right answer is, stands in the profile."""

from chainmark.systems.http.system import SYSTEM

__all__ = ["SYSTEM"]
