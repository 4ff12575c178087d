#!/usr/bin/env bash
# Sets up and runs all tests: lint, the modules without LibTorch under sanitizers, then everything.
#
#   scripts/test.sh [--long]    --long also runs the long forms of the end-to-end tests
#
# Ends with the time of each stage, the tests that needed a second attempt, and ctest's summary.
# scripts/test_costs.py makes a table of what the last run cost.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ "${1:-}" = --long ]; then
  export SCALETRAIN_LONG=1
fi

mkdir -p build
: >build/stages.tsv

stage() { # stage NAME COMMAND...: runs it and notes its wall seconds
  local name=$1 since=$SECONDS status=0
  shift
  "$@" || status=$?
  printf '%s\t%d\n' "$name" $((SECONDS - since)) >>build/stages.tsv
  return $status
}

# shellcheck disable=SC2317 # called by stage()
sanitized_tests() { # sanitized_tests PRESET
  cmake --preset "$1" >/dev/null &&
    cmake --build --preset "$1" --target unit_tests -- --quiet &&
    ctest --preset "$1" --label-regex unit --parallel "$(nproc)" \
      --output-junit tests.xml --test-output-truncation head
}

# Many tests wait for a timeout, a server or a signal, so more run at a time than there are cores. A
# test that fails is tried once more; those that needed it are listed at the end.
# shellcheck disable=SC2317 # called by stage()
all_tests() {
  ctest --preset release --parallel "$((2 * $(nproc)))" --repeat until-pass:2 \
    --output-junit tests.xml --test-output-truncation head | tee build/release/tests.log
}

stage "setup and build" scripts/setup.sh --tests
stage digits .deps/venv/bin/python scripts/make_digits.py digits
stage lint scripts/lint.sh
stage "AddressSanitizer" sanitized_tests tidy # tidy is asan too
stage "ThreadSanitizer" sanitized_tests tsan
status=0
stage tests all_tests || status=$?

printf '\nStages, in seconds:\n'
cat build/stages.tsv
printf '\nTests that needed a second attempt:\n'
sed -nE 's/^.*Test +#[0-9]+: ([^ ]+) \.*\*\*\*(Failed|Timeout|Exception).*/  \1/p' \
  build/release/tests.log | sort -u | grep . || echo "  none"
grep -E '^[0-9]+% tests passed' build/release/tests.log
exit $status
