"""Looks for a text in every column of every table there is, so that a table made tomorrow cannot be forgotten."""

from memory_plane.store.database import Pool, connection

_COLUMNS = """
SELECT c.table_schema, c.table_name, c.column_name, c.data_type
FROM information_schema.columns c
JOIN information_schema.tables t USING (table_schema, table_name)
WHERE t.table_type = 'BASE TABLE' AND c.table_schema NOT IN ('pg_catalog', 'information_schema')
ORDER BY 1, 2, 3
"""


async def columns_with(pool: Pool, needle: str) -> set[str]:
    """`table.column` of every column in which the text stands, whatever the column's type and the text's case."""
    found = set()
    async with connection(pool) as conn:
        for schema, table, column, data_type in await conn.fetch(_COLUMNS):
            name = f'"{column}"'
            value = f"encode({name}, 'escape')" if data_type == "bytea" else f"{name}::text"
            rows = await conn.fetchval(
                f'SELECT count(*) FROM "{schema}"."{table}" WHERE position(lower($1) in lower({value})) > 0', needle
            )
            if rows:
                found.add(f"{table}.{column}")
    return found
