from concurrent.futures import ThreadPoolExecutor

from memory_plane.contracts.ids import IdKind, new_id


def test_ids_of_one_process_ascend_and_name_their_kind() -> None:
    ids = [new_id(IdKind.CHUNK) for _ in range(5000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert all(id_.startswith("kchk_") and len(id_) == 37 for id_ in ids)


def test_ids_are_unique_across_threads() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = [
            id_ for batch in pool.map(lambda _: [new_id(IdKind.EDGE) for _ in range(2000)], range(8)) for id_ in batch
        ]
    assert len(set(made)) == 16_000


def test_layout_is_uuid_version_7() -> None:
    value = new_id(IdKind.DOCUMENT).removeprefix("kdoc_")
    assert value[12] == "7"
    assert value[16] in "89ab"
