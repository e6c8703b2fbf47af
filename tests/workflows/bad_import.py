"""A workflow file with an import that must never be in one."""

import asyncpg
from temporalio import workflow


@workflow.defn
class BadImportWorkflow:
    @workflow.run
    async def run(self) -> str:
        return asyncpg.__version__
