#!/usr/bin/env bash
# Generates the client, compiles src to dist and runs the unit tests. With
# `check` it fails where what is committed is stale; where Node or the compiler
# is not here and cannot be fetched, that is said and nothing is checked.
set -euo pipefail
cd "$(dirname "$0")/.."
check=${1:-}
# In CI nothing is skipped that could be fetched.
reachable() { [ -n "${CI:-}" ] && npm ping >/dev/null 2>&1; }
if ! bin=$(scripts/setup.sh node); then
  if [ "$check" = check ] && ! reachable; then echo 'plugin: skipped, there is no Node here; dist is committed and works as it is'; exit 0; fi
  exit 1
fi
export PATH="$(tail -n 1 <<<"$bin"):$PATH"
if [ ! -x node_modules/.bin/tsc ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  if ! npm ci --no-audit --no-fund --no-update-notifier --loglevel=error; then
    if [ "$check" = check ] && ! reachable; then echo 'plugin: skipped, the compiler could not be fetched'; exit 0; fi
    exit 1
  fi
fi
node scripts/generate.mjs
node_modules/.bin/tsc -p tsconfig.json
# Swapped in whole: a running host may be loading it.
rm -rf dist.new dist.old
node_modules/.bin/tsc -p tsconfig.build.json --outDir dist.new
[ ! -d dist ] || mv dist dist.old
mv dist.new dist
rm -rf dist.old
if [ "$check" = check ]; then
  node --test 'test/*.test.ts'
  stale=$(git status --porcelain -- src/api.gen.ts dist)
  if [ -n "$stale" ]; then
    echo "$stale"
    echo 'what is generated is stale: run make plugin and commit what it wrote' >&2
    exit 1
  fi
fi
