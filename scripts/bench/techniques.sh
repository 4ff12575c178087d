#!/bin/bash
# Measures memory and speed of the recipes in recipes/techniques/ with every technique that
# `scaletrain bench` knows, of one rank and of several (DDP), and writes the tables of
# docs/lab/techniques.md and a recipe for each row.
#
#   scripts/bench/techniques.sh [--nproc 1,2] [--steps N] [RECIPE...]
#
# It needs the digits (scripts/make_digits.py digits) and the text (scripts/prepare_text.sh).
set -euo pipefail
cd "$(dirname "$0")/../.."

nproc=1,2 steps=20
while [[ ${1-} == --* ]]; do
  case $1 in
    --nproc) nproc=$2 ;;
    --steps) steps=$2 ;;
    *) echo "techniques.sh: $1 is no flag" >&2; exit 2 ;;
  esac
  shift 2
done
recipes=("$@")
[[ ${#recipes[@]} -gt 0 ]] || recipes=(recipes/techniques/*.json)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for recipe in "${recipes[@]}"; do
  name=$(basename "$recipe" .json)
  for ranks in ${nproc//,/ }; do
    for what in memory speed; do
      build/release/bin/scaletrain bench "$what" "$recipe" --nproc "$ranks" --steps "$steps" \
        --json > "$folder/$name.$ranks.$what.json"
    done
  done
done
.deps/venv/bin/python scripts/bench/techniques_page.py "$folder" docs/lab/techniques.md recipes/techniques
