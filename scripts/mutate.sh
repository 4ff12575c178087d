#!/usr/bin/env bash
# Mutates each statement of a source file and shows which mutants its module's unit tests do not see.
#
#   scripts/mutate.sh FILE... [--only N,...] [--jobs N] [--longest SECONDS]    files of one module
#
# 20 minutes a file at most. Needs build/release (scripts/setup.sh --tests). Each file is compiled once,
# with every mutant behind a switch that the environment sets, in build/mutate: the tree and
# build/release stay as they are. Survivors that docs/lab/mutants.md lists with a reason are known; another
# one makes the exit code 1. With --longest, test cases that take longer are left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec .deps/venv/bin/python scripts/mutate/mutate.py "$@"
