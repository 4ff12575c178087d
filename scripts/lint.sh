#!/usr/bin/env bash
# Formatting, shell scripts, module order (quick), then clang-tidy over the modules without LibTorch.
#
#   scripts/lint.sh    needs what scripts/setup.sh --tests installs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for tool in clang-format-14 clang-tidy-14 shellcheck; do
  command -v $tool >/dev/null || {
    printf 'lint: %s is not installed\n  run scripts/setup.sh --tests\n' $tool >&2
    exit 1
  }
done
.deps/venv/bin/python tests/repository/style_test.py
.deps/venv/bin/python tests/repository/layers_test.py
cmake --preset tidy >/dev/null
cmake --build --preset tidy -- --quiet
