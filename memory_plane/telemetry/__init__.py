"""What a running process tells its operators: metrics and traces. Numbers and ids, never content."""
