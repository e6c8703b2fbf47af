"""How a failure leaves an activity: typed, retryable or not, and without content.

Failure messages stay in histories for ever. What our own refusals say was written for that; whatever else fails is
named by its class alone, since messages of databases, parsers and clients quote what they were given.
"""

import logging
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory, FailureError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from memory_plane.contracts.errors import PlaneError, Throttled, Unavailable
from memory_plane.logs import name_in_logs
from memory_plane.store.database import StatementFailed

_log = logging.getLogger(__name__)

LONGEST_PAUSE = timedelta(minutes=2)
"""The breaker of the process honours a Retry-After; an activity comes back sooner and makes no call until then."""


class ContentFreeFailures(Interceptor):
    """Translates whatever leaves an activity. One for every worker."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Translating(next)


class _Translating(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        running = activity.info()
        name_in_logs(workflow=running.workflow_id or "", activity=running.activity_type)
        try:
            return await super().execute_activity(input)
        except FailureError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary: what is not translated here would be stored as it is
            raise translated(error) from None


def translated(error: Exception) -> ApplicationError:
    """The failure that is stored for `error`."""
    if isinstance(error, Unavailable | Throttled):
        pause = timedelta(seconds=error.retry_after) if error.retry_after else None
        return ApplicationError(
            error.detail,
            type=error.code,
            next_retry_delay=min(pause, LONGEST_PAUSE) if pause else None,
            category=ApplicationErrorCategory.BENIGN,
        )
    if isinstance(error, PlaneError):
        return ApplicationError(error.detail, type=error.code, non_retryable=True)
    if isinstance(error, StatementFailed):
        _log.error("activity %s: %s", activity.info().activity_type, error)
        return ApplicationError(str(error), type="statement_failed")
    _log.error(
        "activity %s failed with %s", activity.info().activity_type, type(error).__name__, exc_info=_where(error)
    )
    return ApplicationError(f"{type(error).__name__}; the worker's log says where.", type=type(error).__name__)


def _where(error: Exception) -> tuple[type[Exception], Exception, Any]:
    """The traceback, under an exception that says nothing."""
    silent = RuntimeError(f"{type(error).__name__} (message withheld: it may quote content)")
    return type(silent), silent, error.__traceback__
