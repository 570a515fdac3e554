#!/usr/bin/env bash
# Generates src/gen from the .proto files. The generators are installed by npm ci; nothing is fetched.
set -euo pipefail
cd "$(dirname "$0")"
export PATH="$PWD/../node_modules/.bin:$PATH"
buf generate
