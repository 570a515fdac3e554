#!/usr/bin/env bash
# Lints the .proto files and refuses a change that would break a client built from the last commit.
set -euo pipefail
cd "$(dirname "$0")"
export PATH="$PWD/../node_modules/.bin:$PATH"
buf lint

# Without uncommitted changes the last commit is what is being checked, so it is compared with the one before it.
against=HEAD
if git diff --quiet HEAD -- . 2>/dev/null && git rev-parse --quiet --verify HEAD~1 >/dev/null; then against=HEAD~1; fi
if git cat-file -e "$against:proto/buf.yaml" 2>/dev/null; then
  buf breaking --against "$(git rev-parse --show-toplevel)/.git#ref=$against,subdir=proto"
else
  echo "No earlier .proto files to compare with."
fi
