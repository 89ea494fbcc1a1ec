#!/usr/bin/env bash
# Runs the end-to-end tests against the real hosts. Node and the hosts are put into
# the cache folder once; from then on nothing but loopback is used.
#
# Where they are not here and cannot be fetched the tests are skipped, with a
# sentence; but in CI it is a failure if npm reaches its registry.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! bin=$(scripts/setup.sh hosts); then
  if [ -n "${CI:-}" ] && npm ping >/dev/null 2>&1; then
    echo 'e2e-openclaw: the hosts could not be fetched' >&2
    exit 1
  fi
  echo 'e2e-openclaw: skipped, the hosts are not here and cannot be fetched'
  exit 0
fi
export PATH="$(tail -n 1 <<<"$bin"):$PATH"
# Nothing may reach past loopback: what tries to meets a proxy that is not there.
export HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1,localhost
exec node --test --test-concurrency="${ENGINED_E2E_JOBS:-1}" --test-reporter=spec ${ENGINED_E2E_ARGS:-} "${@:-e2e/*.test.ts}"
