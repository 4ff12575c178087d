#!/bin/bash
# Measures memory and speed of the recipes in recipes/techniques/ with every technique that
# `scaletrain bench` knows, and writes the tables of docs/techniques.md.
#
#   scripts/bench/techniques.sh [--nproc N] [--steps N] [RECIPE...]
#
# It needs the digits (scripts/make_digits.py digits) and the text (scripts/prepare_text.sh).
set -euo pipefail
cd "$(dirname "$0")/../.."

nproc=1 steps=20
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
  for what in memory speed; do
    build/release/bin/scaletrain bench "$what" "$recipe" --nproc "$nproc" --steps "$steps" --json \
      > "$folder/$name.$what.json"
  done
done
.deps/venv/bin/python scripts/bench/techniques_page.py "$folder" docs/techniques.md
