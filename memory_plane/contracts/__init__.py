"""What a host imports: names, ids, models and errors. Needs pydantic and nexus-rpc, nothing of the service."""
