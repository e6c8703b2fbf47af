"""`make operator-walk`: another model is built, reviewed, promoted, demoted and kept by an operator who has nothing but
the Temporal UI, in a real browser, and what the pages say is held against the database.

With `--pictures FOLDER` (`make screenshots`) it writes what he sees. Ends with 0 only if all of it was true.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import quote

import asyncpg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from memory_plane.client import AsyncMemoryClient
from memory_plane.contracts import names
from memory_plane.contracts.errors import PlaneError
from memory_plane.dev.errors import StackError
from memory_plane.dev.stack import Access, DevStack
from memory_plane.plane.engine import Engine
from memory_plane.settings import Settings
from scripts.browser import Browser, NotSeen
from scripts.demo_corpus import python_documents

DOCUMENTS = 600
BEFORE, AFTER = "wordllama", "all-MiniLM-L6-v2"
"""Of 256 and of 384 dims; the second takes long enough to be watched."""
STARTER = "switch-to-minilm"
PATIENCE = 240.0
QUERY = "recursively delete a whole directory tree"
MAIN = "main, #content"
"""The page without its menu."""


class Untrue(Exception):
    """Something that the walk claims did not hold."""


@dataclass(frozen=True)
class Operator:
    """Who has the UI's address, a page, and a folder for pictures if any are wanted."""

    page: Browser
    ui: str
    pictures: Path | None

    def url(self, workflow_id: str) -> str:
        return f"{self.ui}/namespaces/default/workflows/{quote(workflow_id, safe='')}"

    async def picture(self, name: str, of: str = MAIN) -> None:
        if self.pictures is not None:
            await self.page.picture(self.pictures / f"{name}.png", of)

    async def start(self, workflow_id: str, kind: str, given: dict[str, str]) -> None:
        """Fill in the UI's form."""
        page = self.page
        await page.goto(f"{self.ui}/namespaces/default/workflows/start-workflow")
        for field, value in (("workflowId", workflow_id), ("taskQueue", names.QUEUE), ("workflowType", kind)):
            await page.fill(f"#{field}", value)
        await page.reads("Task Queue is Active")
        await page.fill("[contenteditable=true]", json.dumps(given))
        await page.click("Encoding", "label, p, span, legend")  # leaving the editor lays its text out anew
        await self.picture("start")
        await page.click("Start Workflow", "button")
        await page.reads("Workflow started successfully")

    async def watch(self, workflow_id: str) -> None:
        """Open the page on which a workflow says how it stands."""
        await self.page.goto(self.url(workflow_id))
        await self.page.click("User Metadata")

    async def sees(self, *words: str, seconds: float = PATIENCE) -> str:
        """Press R until the page says this; what it says."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return await self.page.reads(*words, seconds=1.0)
            except NotSeen:
                if time.monotonic() > deadline:
                    raise
                await self.page.press("r")

    async def update(self, name: str, data: str = "{}", picture: str | None = None) -> None:
        """Send it from the page's dialog, and see that it was taken."""
        await self._send(name, data, picture)
        if (refusal := await self._answer()) is not None:
            raise Untrue(f"{name} was refused: {refusal}")

    async def refused(self, name: str, picture: str | None = None) -> str:
        """Send it, and see the sentence of its refusal."""
        await self._send(name, "{}", None)
        refusal = await self._answer()
        check(refusal is not None, f"{name} was taken, and should have been refused")
        if picture is not None:
            await self.picture(picture, "dialog[open]")
        await self.page.click("Cancel", "dialog[open] button")
        return refusal or ""

    async def _send(self, name: str, data: str, picture: str | None) -> None:
        page = self.page
        await page.click("More Actions")
        await page.click("Send an Update")
        await page.click("", "button:has(#update-select)")
        if picture is not None:
            await self.picture(f"{picture}-choose", "dialog[open]")
        await page.click(name, "[role=option]")
        await page.fill("dialog[open] [contenteditable=true]", data)
        await page.click("Send an Update", "dialog[open] h3")
        if picture is not None:
            await self.picture(picture, "dialog[open]")
        await page.click("Submit", "dialog[open] button")

    async def _answer(self) -> str | None:
        """None once the dialog has closed; the sentence where it says why not."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            answer = await self.page.evaluate(
                "(dialog => dialog && [...dialog.querySelectorAll('[role=alert]')].map(each => each.innerText.trim())"
                ".filter(text => text).join(' ') || (dialog ? '…' : ''))(document.querySelector('dialog[open]'))"
            )
            if answer == "":
                return None
            if answer != "…":
                return str(answer).splitlines()[0]
            await asyncio.sleep(0.2)
        raise Untrue("The UI's dialog neither closed nor said why.")


@dataclass(frozen=True)
class Truth:
    """What the rows and a search say."""

    database: "asyncpg.Connection[asyncpg.Record]"
    memory: AsyncMemoryClient

    async def live(self) -> str:
        found: str = await self.database.fetchval("SELECT id FROM memory.generation WHERE state = 'live'")
        return found

    async def state(self, generation: str) -> str:
        found: str = await self.database.fetchval("SELECT state FROM memory.generation WHERE id = $1", generation)
        return found

    async def serves(self, generation: str) -> None:
        """This one is live, and searches are answered in full."""
        check(await self.live() == generation, f"{generation} is not live")
        answer = await self.memory.search(QUERY, limit=5)
        check(bool(answer.items) and not answer.degraded, f"a search was answered with {answer.degraded}")


async def main(pictures: Path | None) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="memory-walk-") as folder:
        say("Starting the stack …")
        variables = {"EMBED_MODEL": BEFORE}
        async with DevStack(Path(folder), port=0, variables=variables, say=say) as stack:
            access = stack.access
            check(access.temporal_ui is not None, "this Temporal has no UI of ours")
            async with AsyncMemoryClient(access.api, access.tenant, access.token) as memory, Browser.open() as page:
                database = await asyncpg.connect(access.database)
                try:
                    await captured(memory, database)
                    config = await recipe(access, database)
                    operator = Operator(page, access.temporal_ui or "", pictures)
                    await walk(operator, Truth(database, memory), access.tenant, config)
                finally:
                    await database.close()
    say(f"All of it was so. {time.monotonic() - began:.0f} s.")


async def captured(memory: AsyncMemoryClient, database: "asyncpg.Connection[asyncpg.Record]") -> None:
    documents = list(islice(python_documents(), DOCUMENTS))
    async for item in memory.add_many(documents, batch_size=100):
        check(item.error is None, f"document {item.index} was refused")
    deadline = time.monotonic() + PATIENCE
    count = "SELECT count(*) FROM memory.derivation WHERE embed_state = 'embedded'"
    while await database.fetchval(count) < len(documents):
        check(time.monotonic() < deadline, "the documents were not embedded in time")
        await asyncio.sleep(0.5)
    say(f"… {len(documents)} documents are served under {BEFORE}.")


async def recipe(access: Access, database: "asyncpg.Connection[asyncpg.Record]") -> str:
    """What an administrator has written down before: the other model at the same endpoint; its id."""
    url = await database.fetchval("SELECT base_url FROM memory.embed_model WHERE model = $1 LIMIT 1", BEFORE)
    settings = Settings.load(_env_file=None, database_url=access.database, embed_base_url=url, embed_model=BEFORE)
    async with Engine.open(settings) as engine:
        params = {"embed": {"model": AFTER}, "chunk": {"maxTokens": 128}}
        return (await engine.transforms.create_config(access.tenant, "minilm", params)).id


async def walk(operator: Operator, truth: Truth, tenant: str, config: str) -> None:
    page, old = operator.page, await truth.live()
    say("He starts a run from the UI's form …")
    await operator.start(STARTER, names.TRANSFORM, {"tenant_id": tenant, "config_id": config})
    await page.goto(operator.url(STARTER))
    said = await page.reads("COMPLETED", f"memory-transform/{tenant}/trun_")
    found = re.search(r"memory-transform/[^/]+/(trun_\w+)", said)
    check(found is not None, "the starter does not name the run's workflow")
    run, workflow_id = (found[1], found[0]) if found else ("", "")

    say(f"… sees {run} being built, pauses it, and lets it go on …")
    await operator.watch(workflow_id)
    await operator.sees("deriving", f" of {DOCUMENTS} (", "pause")
    await operator.picture("building")
    await operator.update("pause")
    await operator.sees("paused", "resume")
    check(await truth.state(run) == "building", "a paused run is not being built any more")
    refusal = await operator.refused("promote", "refused")
    check("is for a run that is staged" in refusal, f"the refusal of promote says: {refusal}")
    say(f"… is refused a promote of what is half built ({refusal})")
    await operator.update("resume")

    said = await operator.sees("staged", "Review of", "overlap@10", "promote {}")
    await operator.picture("staged")
    check(f"{DOCUMENTS} versions\n" in said, f"the review does not count {DOCUMENTS} versions")
    check("384 dims" in said, "the review does not say the model's dims")
    await truth.serves(old)
    say("… reads the review, while the old model serves …")

    await operator.update("promote", picture="promote")
    await operator.sees("is live", "a search answers", "demote {}", "finalize {}")
    await operator.picture("live")
    await truth.serves(run)
    check(await truth.state(old) == "archived", "what served before is not archived")
    say("… promotes, and sees that it serves …")
    await operator.watch(names.cutover_id(tenant))
    await operator.sees("The pointer has moved")
    await operator.picture("cutover")

    await operator.watch(workflow_id)
    await operator.update("demote")
    await operator.sees("staged", "demoted:", "promote {}")
    await truth.serves(old)
    check(await truth.state(run) == "staged", "what was demoted is not staged")
    say("… demotes, and the old model serves again …")

    await operator.update("promote")
    await operator.sees("is live", "finalize {}")
    await truth.serves(run)
    await operator.update("finalize")
    await page.goto(operator.url(workflow_id))
    await operator.sees("COMPLETED", "finalized")
    await operator.picture("finalized")
    check(await truth.state(old) == "retired", "what was finalized is not retired")
    left = await truth.database.fetchval("SELECT count(*) FROM memory.chunk WHERE generation_id = $1", old)
    check(left == 0, f"{left} chunks of the retired generation are left")
    await truth.serves(run)
    say("… promotes again, and finalizes: the old generation is deleted.")


def check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Untrue(otherwise)


def say(sentence: str) -> None:
    print(sentence, flush=True)


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--pictures", type=Path, help="A folder to write the pictures to.")
    try:
        asyncio.run(main(given.parse_args().pictures))
    except (Untrue, NotSeen, StackError, PlaneError) as failure:
        sys.exit(f"The walk failed: {failure}")
