"""Any HTTP API: the profile defines the requests and the correct responses."""

from chainmark.systems.http.system import SYSTEM

__all__ = ["SYSTEM"]
