"""A server in Python at the registry: register, renew, list, fetch one schema, hear of a change, leave.

    python3 -m venv .venv && .venv/bin/pip install -r requirements.txt
    PYTHON=.venv/bin/python ./generate.sh
    .venv/bin/python quickstart.py

TOOLCRIB_URL names the registry (127.0.0.1:7850), TOOLCRIB_TOKEN the caller where the registry wants to know;
TOOLCRIB_GENERATED the folder of the generated code (./generated).
"""

import json
import os
import sys
import uuid

import grpc
from google.protobuf.duration_pb2 import Duration

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.environ.get("TOOLCRIB_GENERATED", os.path.join(HERE, "generated")))

from toolcrib.v1 import registry_service_pb2 as api  # noqa: E402
from toolcrib.v1 import registry_service_pb2_grpc as services  # noqa: E402

SERVER_ID = "python-quickstart"
INSTANCE_ID = str(uuid.uuid4())
DEADLINE = 10  # seconds


def tool(name, description, **properties):
    """An MCP tool object; the registry keeps its text byte for byte."""
    schema = {"type": "object", "properties": properties, "required": sorted(properties)}
    return json.dumps({"name": name, "description": description, "inputSchema": schema})


def registration(*definitions):
    """With every definition inline the registry never calls us, so no endpoint is needed; the lease is our health."""
    return api.RegisterRequest(
        server_id=SERVER_ID,
        instance_id=INSTANCE_ID,
        title="Python quickstart",
        tags=["python"],
        lease_ttl=Duration(seconds=30),
        declared=api.DeclaredTools(tools=[api.DeclaredTool(definition=text.encode()) for text in definitions]),
    )


def main():
    address = os.environ.get("TOOLCRIB_URL", "127.0.0.1:7850")
    token = os.environ.get("TOOLCRIB_TOKEN")
    metadata = [("authorization", f"Bearer {token}")] if token else []
    with grpc.insecure_channel(address) as channel:
        registry = services.RegistryServiceStub(channel)

        add = tool("add", "Adds two numbers.", a={"type": "number"}, b={"type": "number"})
        upper = tool("upper", "Turns a text into capitals.", text={"type": "string"})
        registered = registry.Register(registration(add, upper), timeout=DEADLINE, metadata=metadata)
        print(f"registered {len(registered.tools)} tools, lease of {registered.lease.ttl.seconds} s")

        # A real server renews again and again, after as long as each answer says in renew_after.
        lease = api.RenewRequest.Lease(lease_id=registered.lease.lease_id, set_digest=registered.set_digest)
        renewed = registry.Renew(api.RenewRequest(leases=[lease]), timeout=DEADLINE, metadata=metadata)
        print(f"renewed: {api.RenewResult.State.Name(renewed.results[0].state)}")

        mine = api.GetStubsRequest(min_revision=registered.revision)
        mine.filter.server_ids.append(SERVER_ID)
        for stub in registry.GetStubs(mine, timeout=DEADLINE, metadata=metadata).stubs:
            print(f"listed {stub.tool_id}: {stub.brief_description}")

        wanted = api.GetFullSchemaRequest(tool_id=f"{SERVER_ID}/add", min_revision=registered.revision)
        schema = registry.GetFullSchema(wanted, timeout=DEADLINE, metadata=metadata).schema
        assert schema.definition == add.encode(), "a definition comes back byte for byte"
        print(f"fetched {schema.tool_id}: {len(schema.definition)} bytes, {schema.digest[:19]}")

        # A watch begins with a snapshot; then every change comes, with a bookmark now and then in between.
        watch_request = api.WatchRequest(filter=mine.filter, min_revision=registered.revision)
        watch = registry.Watch(watch_request, timeout=60, metadata=metadata)
        next(message for message in watch if message.WhichOneof("message") == "snapshot" and message.snapshot.last)
        louder = tool("upper", "Turns a text into capitals!", text={"type": "string"})
        registry.Register(registration(add, louder), timeout=DEADLINE, metadata=metadata)
        change = next(message.change for message in watch if message.WhichOneof("message") == "change")
        for event in change.events:
            print(f"heard {api.EventType.Name(event.type)} of {event.tool_id}")
        watch.cancel()

        leave = api.DeregisterRequest(lease_id=registered.lease.lease_id)
        removed = registry.Deregister(leave, timeout=DEADLINE, metadata=metadata).removed
        print(f"deregistered: {removed}")


if __name__ == "__main__":
    try:
        main()
    except grpc.RpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
