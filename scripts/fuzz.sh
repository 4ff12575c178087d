#!/usr/bin/env bash
# Fuzzes the parsers of shards, weights, recipes and tokenizers and the JPEG decoder with libFuzzer under ASan and UBSan,
# each for so many seconds.
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]    600 seconds each of tar, index, label, jpeg, pt,
#                                          safetensors, recipe, tokenizer and pieces
#
# Corpora and crashes are kept in build/fuzz/corpus; a crash ends this with the file that caused it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-600}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(tar index label jpeg pt safetensors recipe tokenizer pieces)

cmake --preset fuzz >/dev/null
for target in "${targets[@]}"; do
  cmake --build --preset fuzz --target "fuzz_$target" "libfuzzer_$target" -- --quiet
  corpus=build/fuzz/corpus/$target
  mkdir -p "$corpus"
  "build/fuzz/bin/fuzz_$target" seeds "$corpus"
  "build/fuzz/bin/libfuzzer_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -max_len=65536 -print_final_stats=1 -artifact_prefix="$corpus/../" "$corpus"
done
