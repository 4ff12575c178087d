#!/usr/bin/env bash
# Shows on a machine with an NVIDIA GPU what no other machine can show; the part `layouts` needs several.
#
#   scripts/gpu.sh [PART...]      all parts, or these; each ends within ten minutes
#   scripts/gpu.sh --list         the parts, one a line
#   scripts/gpu.sh pack [FOLDER]  what such a machine needs, in one folder under 64 MiB (build/gpu);
#                                 carry it there and run FOLDER/scripts/gpu.sh
#
# The machine needs a `python3` whose torch is the LibTorch that was built with (2.11 for CUDA 13);
# torchvision, timm and transformers for the peers of the models. PYTHON names another interpreter.
# Results: JSON lines and a table in OUT (default build/gpu-results). ROUNDS=1 measures a model once
# and not three times; KINDS=synthetic leaves out the JPEG shards; CASES=NAME,NAME runs these of the
# part `cases`. Without a GPU it says so, and tries that every part starts on the CPU, at a tiny size.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly part_limit_s=600
readonly pack_limit_mib=64

say() { printf 'gpu: %s\n' "$*" >&2; }

# The libraries of our programs that a bare system may lack: not the C and C++ runtimes, and not
# those that come with torch.
own_libraries() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
    grep -v -E '/(lib(c|m|dl|pthread|rt|resolv|util|stdc\+\+|gcc_s)|ld-linux[^/]*)\.so|/(torch|nvidia)/'
}

pack() {
  local folder=${1:-build/gpu} from=${SCALETRAIN_BIN:-build/release/bin} program
  local programs=(scaletrain scaletrain-worker scaletrain-data libscaletrain_cuda.so test_dist
    test_input test_nn test_precision test_train)
  for program in "${programs[@]}"; do
    [ -e "$from/$program" ] || { say "$from/$program is missing: scripts/setup.sh --tests"; exit 1; }
  done
  rm -rf "$folder"
  mkdir -p "$folder/bin" "$folder/scripts" "$folder/lib"
  for program in "${programs[@]}"; do strip -o "$folder/bin/$program" "$from/$program"; done
  local libraries
  mapfile -t libraries < <(own_libraries "$from"/scaletrain{,-worker,-data})
  cp -L "${libraries[@]}" "$folder/lib/"
  tar -C "$folder" -c bin lib | xz -T0 -2 >"$folder/programs.tar.xz"
  rm -r "${folder:?}/bin" "${folder:?}/lib"
  cp -r scripts/gpu.sh scripts/bench "$folder/scripts/"
  cp -r recipes "$folder/"
  local mib
  mib=$(du -sm "$folder" | cut -f1)
  say "$folder: $mib MiB; there: scripts/gpu.sh [PART...]"
  [ "$mib" -lt $pack_limit_mib ] || { say "that is more than $pack_limit_mib MiB"; exit 1; }
}

if [ "${1:-}" = pack ]; then
  pack "${2:-}"
  exit 0
fi

python=${PYTHON:-}
if [ -z "$python" ]; then
  python=python3
  "$python" -c 'import importlib.util as u; exit(not u.find_spec("torch"))' ||
    python=.deps/venv/bin/python
fi
torch=$("$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))') ||
  { say "$python has no torch: PYTHON names one that has"; exit 2; }

if [ -e programs.tar.xz ] && [ ! -e bin ]; then # a packed folder
  "$python" -c 'import tarfile; tarfile.open("programs.tar.xz").extractall()'
fi
[ ! -d bin ] || export SCALETRAIN_BIN=$PWD/bin
export SCALETRAIN_LIBRARIES=$torch/lib:$PWD/lib
out=${OUT:-build/gpu-results}
mkdir -p "$out"

run_parts() { "$python" -u scripts/bench/gpu_parts.py --out "$out" "$@"; }

if [ "${1:-}" = --list ]; then
  run_parts --list
  exit 0
fi
if [ $# -gt 0 ]; then parts=("$@"); else mapfile -t parts < <(run_parts --list); fi
failed=()
for part in "${parts[@]}"; do
  say "$part"
  timeout --kill-after=20 $part_limit_s "$python" -u scripts/bench/gpu_parts.py --out "$out" "$part" ||
    failed+=("$part")
done
run_parts --table
if [ ${#failed[@]} -gt 0 ]; then
  say "failed: ${failed[*]}"
  exit 1
fi
