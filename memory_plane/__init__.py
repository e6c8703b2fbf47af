"""Memory Plane: a durable memory for software agents, on Temporal and PostgreSQL/pgvector."""

__version__ = "0.1.0"
