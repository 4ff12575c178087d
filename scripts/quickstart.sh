#!/usr/bin/env bash
# Sets up and runs the main job: a ResNet-18 on real handwritten digits, two ranks, from tar shards.
#
#   scripts/quickstart.sh [launch flags...]    for example --nproc 1 --set epochs=2
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh scaletrain scaletrain-worker
.deps/venv/bin/python scripts/make_digits.py digits
exec build/release/bin/scaletrain launch --nproc 2 \
  --set "output=runs/quickstart-$(date +%Y%m%d-%H%M%S)" "$@" recipes/digits_resnet18.json
