"""Live search against a model in plain Python, with every operation at every point of a generation's life.

The generations are built and cut over in process, step by step as the workflows do it, so that writes fall between any
two steps, and a step is killed at any moment. Kills of whole workers are in test_inv_21.py and test_field_case.py.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memory_plane.contracts.enums import RetentionClass
from memory_plane.contracts.errors import Conflict
from memory_plane.contracts.transforms import CutPlan, StepInput
from memory_plane.plane.engine import Engine
from tests.fakes.endpoint import FakeEndpoint
from tests.generations.conftest import MODELS, configured
from tests.generations.world import Tenant

T = TypeVar("T")
REFS = [f"ref-{n}" for n in range(5)]
WORDS = ["alder", "birch", "cedar", "damson", "elder", "fir"]
RECIPES: list[dict[str, Any]] = [
    {"embed": {"model": "two"}, "chunk": {"maxTokens": 24}},
    {"embed": {"model": "one"}, "chunk": {"maxTokens": 48}},
    {"embed": {"model": "two"}, "history": True},
]
MOMENTS = st.floats(0.0, 0.05)
"""Seconds after which something is killed that takes about as long."""


def body(word: str) -> str:
    """A few chunks under the smaller recipes; `common` is what all are searched by."""
    return f"common {word} one. " + " ".join(
        f"The {word} stands by the {n}th mile of the common road." for n in range(8)
    )


async def _killed(work: Coroutine[Any, Any, object], after: float) -> None:
    """What a dead process leaves of a transaction is what one leaves that was broken off: nothing, or all."""
    task = asyncio.ensure_future(work)
    await asyncio.wait([task], timeout=after)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@dataclass
class Version:
    id: str
    word: str
    status: str


@dataclass
class Document:
    id: str
    versions: list[Version] = field(default_factory=list)
    tags: list[str] | None = None

    @property
    def active(self) -> Version | None:
        return next((version for version in self.versions if version.status == "active"), None)

    @property
    def shown_deprecated(self) -> Version | None:
        """What includeDeprecated shows beside: a deprecated version that nothing living has come after."""
        living = [version for version in self.versions if version.status != "tombstoned"]
        return living[-1] if living and living[-1].status == "deprecated" else None


@contextmanager
def engine_on(loop: asyncio.AbstractEventLoop, dsn: str) -> Iterator[Engine]:
    async def opened() -> Any:
        fake = FakeEndpoint(models=MODELS)
        await fake.start()
        engine = Engine.open(configured(dsn, fake))
        return fake, engine, await engine.__aenter__()

    fake, context, engine = loop.run_until_complete(opened())
    try:
        loop.run_until_complete(engine.embedding.ensure_engine_model())
        yield engine
    finally:
        loop.run_until_complete(context.__aexit__(None, None, None))
        loop.run_until_complete(fake.stop())


class LiveSearch(RuleBasedStateMachine):
    """`engine` and `loop` are given by the test."""

    engine: Engine
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.tenant = Tenant(self.engine, f"t-{uuid4().hex[:12]}")
        self.documents: dict[str, Document] = {}
        self.building: str | None = None
        self.plan: CutPlan | None = None
        self.taken_down: dict[str, str] = {}

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize(staged=st.booleans())
    def begin(self, staged: bool) -> None:
        """Half of the time there is a generation to promote from the first step on."""
        self.run(self.tenant.allow("ann"))
        self.add("ref-0", "alder")
        self.live = self.run(self.tenant.live())
        self.ready: list[str] = []
        if staged:
            self.start_run(RECIPES[0])
            self.stage()

    # Writes

    @rule(ref=st.sampled_from(REFS), word=st.sampled_from(WORDS))
    def add(self, ref: str, word: str) -> None:
        """A first capture, a NOOP, a supersede, A → B → A, or one after a forget or a deprecation."""
        captured = self.run(self.tenant.capture(body(word), title=f"about {word}", external_ref=ref))
        document = self.documents.setdefault(ref, Document(captured.document_id))
        active = document.active
        if active is not None and active.word == word:
            assert captured.status == "noop" and captured.version_id == active.id
            return
        assert captured.status == "captured" and captured.document_id == document.id
        if active is not None:
            active.status = "superseded"
        document.versions.append(Version(captured.version_id, word, "active"))

    @rule(ref=st.sampled_from(REFS), tag=st.sampled_from(["team:red", "team:blue"]))
    def retag(self, ref: str, tag: str) -> None:
        document = self.documents.get(ref)
        if document is None or document.active is None:
            return
        word = document.active.word
        again = self.run(
            self.tenant.capture(body(word), title=f"about {word}", external_ref=ref, access_tags=[f"memory.{tag}"])
        )
        assert again.status == "noop"

    @rule(ref=st.sampled_from(REFS), wanted=st.sampled_from(list(RetentionClass)))
    def reclass(self, ref: str, wanted: RetentionClass) -> None:
        document = self.documents.get(ref)
        if document is not None and document.active is not None and wanted is not RetentionClass.EPHEMERAL:
            visibility = self.run(self.tenant.visibility())
            self.run(self.engine.retention.set_retention_class(visibility, document.active.id, wanted))

    @rule(ref=st.sampled_from(REFS))
    def forget(self, ref: str) -> None:
        document = self.documents.get(ref)
        if document is not None:
            self.run(self.tenant.forget(document.id))
            for version in document.versions:
                version.status = "tombstoned"

    @rule(ref=st.sampled_from(REFS))
    def purge(self, ref: str) -> None:
        document = self.documents.get(ref)
        if document is not None:
            answer = self.run(self.engine.retention.purge(self.run(self.tenant.visibility()), document.id))
            if answer.deleted:
                del self.documents[ref]

    @rule(ref=st.sampled_from(REFS), newest=st.booleans())
    def deprecate(self, ref: str, newest: bool) -> None:
        document = self.documents.get(ref)
        wanted = "active" if newest else "superseded"
        found = next((each for each in document.versions if each.status == wanted), None) if document else None
        if found is not None:
            self.run(self.engine.retention.deprecate(self.tenant.tenant, found.id, None))
            found.status = "deprecated"

    @rule()
    def embed(self) -> None:
        self.run(self.tenant.embed_live())

    # The life of generations

    @precondition(lambda self: self.building is None)
    @rule(params=st.sampled_from(RECIPES))
    def start_run(self, params: dict[str, Any]) -> None:
        self.building = self.run(self.tenant.run(params))

    @precondition(lambda self: self.building is not None)
    @rule()
    def build_a_page(self) -> None:
        assert self.building is not None
        self.run(self.tenant.step(self.building))

    @precondition(lambda self: self.building is not None)
    @rule(after=MOMENTS)
    def the_worker_is_killed_in_a_page(self, after: float) -> None:
        assert self.building is not None
        self.run(_killed(self.tenant.step(self.building), after))

    @precondition(lambda self: self.building is not None)
    @rule()
    def stage(self) -> None:
        assert self.building is not None
        standing = self.run(self.tenant.build(self.building))
        assert (standing.state, standing.failed) == ("staged", 0)
        self.ready.append(self.building)
        self.building = None

    @precondition(lambda self: self.plan is None and self.ready)
    @rule(data=st.data())
    def begin_promote(self, data: st.DataObject) -> None:
        self.plan = self.run(self.tenant.check("promote", data.draw(st.sampled_from(self.ready))))

    @precondition(lambda self: self.plan is None and self.live in self.taken_down)
    @rule()
    def begin_demote(self) -> None:
        try:
            self.plan = self.run(self.tenant.check("demote", self.live))
        except Conflict as refused:
            assert refused.code == "archived_retired"

    @precondition(lambda self: self.plan is not None)
    @rule()
    def catch_up_a_page(self) -> None:
        assert self.plan is not None
        self.run(
            self.engine.deriving.step(
                StepInput(tenant_id=self.tenant.tenant, generation=self.plan.target, retry_before=self.plan.begun_at)
            )
        )

    @precondition(lambda self: self.plan is not None)
    @rule()
    def cut(self) -> None:
        """Without any catch-up the cut derives the last versions itself, or says that it is behind."""
        assert self.plan is not None
        if self.run(self.engine.cutover.cut(self.plan)).flipped:
            self._flipped(self.plan)

    def _flipped(self, plan: CutPlan) -> None:
        self.plan = None
        self.live = plan.target
        if plan.kind == "promote":
            self.taken_down[plan.target] = plan.source
        if plan.target in self.ready:
            self.ready.remove(plan.target)
        self.ready.append(plan.source)

    @precondition(lambda self: self.plan is not None)
    @rule(after=MOMENTS)
    def the_worker_is_killed_in_the_cut(self, after: float) -> None:
        assert self.plan is not None
        self.run(_killed(self.engine.cutover.cut(self.plan), after))
        if self.run(self.tenant.live()) == self.plan.target:
            self._flipped(self.plan)

    @precondition(lambda self: self.plan is not None)
    @rule()
    def give_up_the_cutover(self) -> None:
        self.plan = None

    @precondition(lambda self: self.plan is None and self.ready)
    @rule(data=st.data())
    def retire(self, data: st.DataObject) -> None:
        generation = data.draw(st.sampled_from(self.ready))
        self.run(
            self.engine.pool.execute(
                "UPDATE memory.generation SET state_at = state_at - interval '1 hour' WHERE id = $1", generation
            )
        )
        self.run(self.engine.retiring.retire(self.tenant.tenant, generation))
        self.run(self.engine.retiring.delete(self.tenant.tenant, generation))
        self.ready.remove(generation)

    # What must hold

    @invariant()
    def live_search_equals_the_model(self) -> None:
        if not hasattr(self, "live"):
            return
        assert self.run(self.tenant.live()) == self.live
        for deprecated in (False, True):
            answer = self.run(self.tenant.search("common", limit=50, includeDeprecated=deprecated))
            found = {}
            for item in answer.items:
                assert item.attribution is not None
                found[item.document_id] = (item.attribution.version_id, item.title)
            expected = {}
            for document in self.documents.values():
                shown = document.active or (document.shown_deprecated if deprecated else None)
                if shown is not None:
                    expected[document.id] = (shown.id, f"about {shown.word}")
            assert found == expected

    def teardown(self) -> None:
        """Whatever was left under way goes through the whole circle."""
        if not hasattr(self, "live"):
            return
        self.plan = None
        if self.building is None:
            self.start_run(RECIPES[0])
        self.stage()
        staged = self.ready[-1]
        for turn, kind in enumerate(("promote", "demote", "promote")):
            self.run(self.tenant.promote(staged) if kind == "promote" else self.tenant.demote(staged))
            self.live = self.run(self.tenant.live())
            self.live_search_equals_the_model()
            self.forget(REFS[turn])
            for ref in REFS[turn:]:
                self.add(ref, WORDS[turn])
            self.live_search_equals_the_model()
            self.embed()
            answer = self.run(self.tenant.search("common", limit=50))
            for item in answer.items:
                assert item.attribution is not None and "dense" in item.attribution.channels
            assert answer.degraded is None


@pytest.mark.timeout(240)
def test_inv_16_live_search_equals_a_plain_model_at_every_point(module_database: str) -> None:
    loop = asyncio.new_event_loop()
    try:
        with engine_on(loop, module_database) as engine:
            machine = type("Machine", (LiveSearch,), {"engine": engine, "loop": loop})
            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=12,
                    stateful_step_count=25,
                    deadline=None,
                    database=None,
                    # An example takes a second: shrinking one takes longer than reading its thirty steps.
                    phases=[Phase.explicit, Phase.generate],
                    suppress_health_check=list(HealthCheck),
                ),
            )
    finally:
        loop.close()
