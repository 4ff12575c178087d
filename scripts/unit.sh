#!/usr/bin/env bash
# Builds and runs the unit tests of one module: doctest is all that they need besides the programs.
#
#   scripts/unit.sh MODULE [FILTER]    for example scripts/unit.sh data order/
#
# MODULE is a folder of tests/ with unit tests, FILTER a part of the names that ctest lists.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

module=${1:-}
if [ -z "$module" ] || ! grep -q "^ *scaletrain_unit_tests($module " tests/CMakeLists.txt; then
  modules=$(sed -nE 's/^ *scaletrain_unit_tests\((\w+) .*/\1/p' tests/CMakeLists.txt | tr '\n' ' ')
  printf 'usage: scripts/unit.sh MODULE [FILTER]\n  MODULE is one of: %s\n' "$modules" >&2
  exit 2
fi
scripts/setup.sh --unit "test_$module"
exec ctest --preset release --label-regex '^unit$' --tests-regex "^$module/.*${2:-}" \
  --parallel "$(nproc)"
