"""The one way to a Temporal client: converter, encryption, TLS and keys are settled here and nowhere else."""

from temporalio.client import Client
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode

from memory_plane.payload_codec import data_converter
from memory_plane.settings import Settings
from memory_plane.telemetry import tracing

DATA_CONVERTER = data_converter(None)
"""Every client, worker, replayer and test environment takes this object (or, with keys, one that encrypts), or models
arrive as dictionaries."""


async def connect(settings: Settings, *, lazy: bool = False, runtime: Runtime | None = None) -> Client:
    """A client by `settings`, over what the environment and file of the Temporal CLI say (`TEMPORAL_TLS_*`, profiles).

    With `lazy` the first call connects, so that a process starts while Temporal is down. Otherwise raises
    RuntimeError when the server cannot be reached.
    """
    return await Client.connect(
        **connection_options(settings),
        data_converter=data_converter(settings.payload_keys),
        interceptors=tracing.temporal_interceptors(),
        lazy=lazy,
        runtime=runtime,
    )


def connection_options(settings: Settings) -> ClientConnectConfig:
    """What `Client.connect` is told: a setting that was given wins over the CLI's profile, a default does not."""
    options = ClientConfig.load_client_connect_config()
    given = settings.model_fields_set
    if "temporal_address" in given or "target_host" not in options:
        options["target_host"] = settings.temporal_address
    if "temporal_namespace" in given or "namespace" not in options:
        options["namespace"] = settings.temporal_namespace
    if settings.temporal_api_key is not None:
        options["api_key"] = settings.temporal_api_key.get_secret_value()
    if "tls" not in options:
        options["tls"] = settings.temporal_tls or settings.temporal_api_key is not None
    return options


def trouble(settings: Settings, problem: Exception) -> str:
    """What is wrong with Temporal, and the way out, from what `connect` or a call raised: a sentence for operators."""
    here = f"Temporal at {settings.temporal_address}"
    if not isinstance(problem, RPCError):
        return f"{here} cannot be reached; check TEMPORAL_ADDRESS, and that it runs."
    if problem.status is RPCStatusCode.NOT_FOUND:
        namespace = settings.temporal_namespace
        return (
            f"{here} has no namespace {namespace}; check TEMPORAL_NAMESPACE, "
            f"or make it: temporal operator namespace create -n {namespace}"
        )
    if problem.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED):
        return f"{here} does not let us do this; check TEMPORAL_API_KEY and what it may do."
    return f"{here} did not take it ({problem.status.name}); try again."


def telemetry_runtime(metrics_port: int | None) -> Runtime | None:
    """The runtime that serves the SDK's metrics on a loopback port; None (the SDK's default) without a port.

    One a process: build it before the first client.
    """
    if metrics_port is None:
        return None
    prometheus = PrometheusConfig(bind_address=f"127.0.0.1:{metrics_port}", durations_as_seconds=True)
    return Runtime(telemetry=TelemetryConfig(metrics=prometheus))
