"""The judged collections of ../shared/data, as documents, questions and their judgements; and the measures."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ADVERSARIAL = 5
_MARK = re.compile(r"D:?(\d+):(\d+)")
_FIELD = re.compile(r"\.([ITAWB])(?:\s+(\d+))?\s*$")


@dataclass(frozen=True)
class Question:
    """`relevant` grades documents by key; `lines` are texts that answer it, where the collection has such."""

    text: str
    relevant: Mapping[str, int]
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Document:
    key: str
    title: str
    text: str


@dataclass(frozen=True)
class Collection:
    """One conversation or corpus: a tenant of its own; questions are asked only within it."""

    name: str
    documents: Sequence[Document]
    questions: Sequence[Question] = field(repr=False)


@dataclass(frozen=True)
class _Turn:
    key: str
    session: int
    speaker: str
    date: str
    text: str

    @property
    def line(self) -> str:
        return f"{self.speaker} ({self.date}): {self.text}"


def _conversations(data: Path) -> Iterator[tuple[str, list[_Turn], list[dict[str, object]]]]:
    for sample in json.loads((data / "locomo" / "locomo6.json").read_text()):
        spoken = sample["conversation"]
        sessions = sorted(int(name.split("_")[1]) for name in spoken if re.fullmatch(r"session_\d+", name))
        turns = [
            _Turn(turn["dia_id"], number, turn["speaker"], spoken[f"session_{number}_date_time"], turn["text"])
            for number in sessions
            for turn in spoken[f"session_{number}"]
        ]
        yield sample["sample_id"], turns, sample["qa"]


def _evidence(question: Mapping[str, object], known: set[str]) -> list[str]:
    marks = [f"D{int(found[1])}:{int(found[2])}" for each in question["evidence"] for found in _MARK.finditer(each)]  # type: ignore[attr-defined]
    return [mark for mark in dict.fromkeys(marks) if mark in known]


def locomo_turns(data: Path) -> Iterator[Collection]:
    """One turn a document: "speaker (session date): text", in order, under its own mark as title."""
    for name, turns, asked in _conversations(data):
        known = {turn.key for turn in turns}
        questions = [
            Question(str(each["question"]), dict.fromkeys(marks, 1))
            for each in asked
            if each["category"] != ADVERSARIAL and (marks := _evidence(each, known))
        ]
        yield Collection(f"turns-{name}", [Document(turn.key, turn.key, turn.line) for turn in turns], questions)


def locomo_sessions(data: Path) -> Iterator[Collection]:
    """One session a document, a line a turn; relevant are the sessions of the evidence."""
    for name, turns, asked in _conversations(data):
        by_key = {turn.key: turn for turn in turns}
        documents = []
        for number in dict.fromkeys(turn.session for turn in turns):
            spoken = [turn for turn in turns if turn.session == number]
            text = "\n".join(f"{turn.speaker}: {turn.text}" for turn in spoken)
            documents.append(Document(f"s{number}", f"Session {number} ({spoken[0].date})", text))
        questions = [
            Question(
                str(each["question"]),
                {f"s{by_key[mark].session}": 1 for mark in marks},
                [by_key[mark].text for mark in marks],
            )
            for each in asked
            if each["category"] != ADVERSARIAL and (marks := _evidence(each, set(by_key)))
        ]
        yield Collection(f"sessions-{name}", documents, questions)


def cranfield(data: Path) -> Iterator[Collection]:
    folder = data / "cranfield"
    documents = [
        Document(key, title[:480], text)
        for key, fields in _marked(folder / "cran.all.1400")
        if (text := fields.get("W", "")) and (title := fields.get("T", "") or key)
    ]
    known = {document.key for document in documents}
    # Judgements number the questions in file order, not by their .I mark.
    asked = [fields.get("W", "") for _, fields in _marked(folder / "cran.qry")]
    judged: dict[int, dict[str, int]] = {}
    for line in (folder / "cranqrel").read_text().splitlines():
        number, key, grade = [*line.split(), "", "", ""][:3]
        if grade not in ("", "-1", "5") and key in known:
            judged.setdefault(int(number), {})[key] = 5 - int(grade)
    questions = [Question(text, judged[number]) for number, text in enumerate(asked, start=1) if number in judged]
    yield Collection("cranfield", documents, questions)


def _marked(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    key, name = "", ""
    fields: dict[str, list[str]] = {}
    for line in [*path.read_text().splitlines(), ".I 0"]:
        mark = _FIELD.match(line)
        if mark is None:
            fields.setdefault(name, []).append(line)
        elif mark[1] == "I":
            if key:
                yield key, {each: " ".join(" ".join(lines).split()) for each, lines in fields.items()}
            key, fields, name = mark[2], {}, ""
        else:
            name = mark[1]


def _lines(path: Path) -> list[str]:
    """By newline alone: `splitlines` would cut at line separators within a text."""
    return [line for line in path.read_text().split("\n") if line]


def pooled(name: str, data: Path) -> Iterator[Collection]:
    """A corpus with judgements as TSV; a passage without a title gets its first words."""
    folder = data / name
    documents = []
    for line in _lines(folder / "corpus.jsonl"):
        row = json.loads(line)
        if row["text"].strip():
            title = row["title"] or " ".join(row["text"].split()[:8])
            documents.append(Document(row["_id"], title[:480], row["text"]))
    known = {document.key for document in documents}
    judged: dict[str, dict[str, int]] = {}
    for line in _lines(folder / "qrels" / "test.tsv")[1:]:
        asked, key, grade = line.split("\t")
        if int(grade) > 0 and key in known:
            judged.setdefault(asked, {})[key] = int(grade)
    rows = [json.loads(line) for line in _lines(folder / "queries.jsonl")]
    yield Collection(name, documents, [Question(r["text"], judged[r["_id"]]) for r in rows if r["_id"] in judged])


SETS: Mapping[str, Callable[[Path], Iterator[Collection]]] = {
    "LoCoMo turns": locomo_turns,
    "LoCoMo sessions": locomo_sessions,
    "Cranfield": cranfield,
    "MS MARCO 5k": lambda data: pooled("msmarco5k", data),
    "DBpedia 5k": lambda data: pooled("dbpedia5k", data),
}


@dataclass(frozen=True)
class Score:
    """Of one question. `context`: share of the answering lines within the first 2,000 tokens; None without lines."""

    recall_5: float
    recall_10: float
    ndcg_10: float
    mrr_10: float
    context: float | None = None


def judge(found: Sequence[str], question: Question, context: float | None = None) -> Score:
    grades = [question.relevant.get(key, 0) for key in found[:10]]
    wanted = len(question.relevant)
    ideal = sorted(question.relevant.values(), reverse=True)[:10]
    first = next((place for place, grade in enumerate(grades, start=1) if grade), None)
    return Score(
        recall_5=sum(1 for grade in grades[:5] if grade) / wanted,
        recall_10=sum(1 for grade in grades if grade) / wanted,
        ndcg_10=_gain(grades) / _gain(ideal),
        mrr_10=0.0 if first is None else 1.0 / first,
        context=context,
    )


def _gain(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(place + 1) for place, grade in enumerate(grades, start=1))


CONTEXT_TOKENS = 2_000
CHARS_PER_TOKEN = 4


def read_context(passages: Sequence[tuple[float, str]], lines: Sequence[str]) -> float:
    """The share of `lines` in the passages an agent reads: best first by score, until 2,000 tokens are full."""
    left = CONTEXT_TOKENS
    read = []
    for _, text in sorted(passages, key=lambda passage: -passage[0]):
        left -= len(text) // CHARS_PER_TOKEN
        if left < 0:
            break
        read.append(text)
    return sum(1 for line in lines if any(line in text for text in read)) / len(lines)
