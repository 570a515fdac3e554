#!/bin/sh
# Generates the Python client from the repository's proto folder into ./generated.
cd "$(dirname "$0")" && mkdir -p "${1:-generated}"
"${PYTHON:-python3}" -m grpc_tools.protoc -I ../../../proto --python_out="${1:-generated}" --grpc_python_out="${1:-generated}" \
  toolcrib/v1/error.proto toolcrib/v1/stub.proto toolcrib/v1/server.proto toolcrib/v1/registry_service.proto
