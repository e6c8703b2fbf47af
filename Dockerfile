# The API, the worker, the migrate job: one image, one entry point (`memory`). Non-root; runs on a read-only root.
FROM python:3.13-slim-trixie AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/memory
WORKDIR /src
COPY requirements-service.lock ./
RUN /opt/memory/bin/pip install --require-hashes -r requirements-service.lock
COPY pyproject.toml README.md LICENSE ./
COPY memory_plane memory_plane
# The build backend alone comes without hashes; what runs in the image is all from the lock file.
RUN pip wheel --no-deps --wheel-dir /wheel . && /opt/memory/bin/pip install --no-deps /wheel/*.whl

FROM python:3.13-slim-trixie
ARG BUILD_ID=""
RUN useradd --system --uid 10001 --home-dir /app --shell /usr/sbin/nologin memory
COPY --from=build /opt/memory /opt/memory
WORKDIR /app
COPY worker.py schedules.py ./
COPY api api
COPY workflows workflows
COPY activities activities
COPY migrations migrations
COPY memory_plane memory_plane
ENV PATH=/opt/memory/bin:$PATH PYTHONPATH=/app PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    MEMORY_BUILD_ID=$BUILD_ID
USER 10001
EXPOSE 8080
ENTRYPOINT ["memory"]
CMD ["api", "--host", "0.0.0.0"]
