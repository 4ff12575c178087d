#!/usr/bin/env bash
# Sets up and runs all tests: lint, the torch-free modules under sanitizers, then everything.
#
#   scripts/test.sh [--long]    --long also runs the long forms of the end-to-end tests
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ "${1:-}" = --long ]; then
  export SCALETRAIN_LONG=1
fi

scripts/setup.sh --tests
.deps/venv/bin/python scripts/make_digits.py digits
scripts/lint.sh
cmake --preset tsan >/dev/null
for preset in tidy tsan; do # tidy is asan too
  cmake --build --preset $preset --target unit_tests -- --quiet
  ctest --preset $preset --label-regex unit --parallel "$(nproc)"
done
# Many of these tests wait: for a time-out, a server, a signal. Where the machine stood still
# meanwhile, or a peer program lost its part, a second attempt shows it; both are in the output.
ctest --preset release --parallel "$((2 * $(nproc)))" --repeat until-pass:2
