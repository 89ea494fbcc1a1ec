#!/usr/bin/env bash
# Puts what the plugin's build and tests need into the cache folder: Node and,
# with `hosts`, the hosts that the end-to-end tests run. What is there is kept, so
# that all of it works offline from the second time on.
#
#   scripts/setup.sh node|hosts
#
# Prints the directory of the node binary on its last line; exits 3 where
# something is missing and cannot be fetched.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
cache=${ENGINED_OPENCLAW_CACHE:-$root/.tmp/openclaw}
node_major=26
hosts=(2026.9.6 2026.6.11)

fetch() { # fetch DIR PACKAGE@VERSION
  mkdir -p "$1"
  [ -f "$1/package.json" ] || echo '{"private":true}' > "$1/package.json"
  command -v npm >/dev/null || { echo "setup: $2 is not in $cache, and there is no npm to fetch it with" >&2; exit 3; }
  echo "setup: fetching $2 (once)" >&2
  (cd "$1" && npm install --no-audit --no-fund --no-update-notifier --loglevel=error "$2" >&2) || {
    echo "setup: $2 is not in $cache and could not be fetched (no network?)" >&2
    exit 3
  }
}

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) platform=linux-x64 ;;
  Linux-aarch64) platform=linux-arm64 ;;
  Darwin-arm64) platform=darwin-arm64 ;;
  *) platform= ;;
esac

bin="$cache/node/node_modules/node-$platform/bin"
if [ ! -x "$bin/node" ]; then
  if command -v node >/dev/null && node -e 'const [a,b]=process.versions.node.split(".").map(Number);process.exit(a>26||(a===26&&b>=1)?0:1)'; then
    bin=$(dirname "$(command -v node)")
  elif [ -n "$platform" ]; then
    fetch "$cache/node" "node-$platform@$node_major"
  else
    echo "setup: Node $node_major or newer is needed" >&2
    exit 3
  fi
fi
export PATH="$bin:$PATH"

if [ "${1:-}" = hosts ]; then
  for version in "${hosts[@]}"; do
    [ -f "$cache/host-$version/node_modules/openclaw/package.json" ] || fetch "$cache/host-$version" "openclaw@$version"
  done
fi
echo "$bin"
