#!/usr/bin/env bash
# Formatting, shell scripts, module order (quick), then clang-tidy over the modules without LibTorch;
# what that compiles in build/tidy has AddressSanitizer, for scripts/test.sh to go on with.
# SCALETRAIN_LONG=1 adds the checks that take as long as all others, those of the static analyzer too.
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
SCALETRAIN_LINT=1 .deps/venv/bin/python tests/repository/style_test.py
.deps/venv/bin/python tests/repository/layers_test.py
all_checks=(-UCMAKE_CXX_CLANG_TIDY) # the cheap ones: scripts/cmake/tidy_first.sh
if [ "${SCALETRAIN_LONG:-}" = 1 ]; then
  all_checks=("-DCMAKE_CXX_CLANG_TIDY=clang-tidy-14;--quiet;--checks=-bugprone-suspicious-include")
fi
cmake --preset tidy "${all_checks[@]}" >/dev/null
cmake --build --preset tidy --target lib/all launcher/all app/all -- --quiet
