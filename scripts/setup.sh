#!/usr/bin/env bash
# Installs what scaletrain needs and builds the preset "release" into build/release.
#
#   scripts/setup.sh [--tests | --unit] [--cuda] [TARGET...]    without targets everything is built
#   scripts/setup.sh --peer NAME                                builds nothing
#
#   --tests  also what the tests need: packages, Python peers, OpenStack Swift
#   --unit   only what the unit tests need besides the programs: doctest
#   --cuda   build the CUDA library although no device is visible here, for example on a login node
#   --peer   only .deps/peer-NAME: a virtual environment with scripts/requirements-peer-NAME.txt, which
#            scripts/test.sh --long and scripts/bench/ compare with
#
# Debian packages through apt-get (as root; otherwise the missing ones are named), LibTorch and Python
# packages into .deps/venv. What is there already is left alone, so a second run is quick. Without
# --tests and without a CUDA device LibTorch comes without its CUDA libraries (1.6 GB instead of 5).
# An existing LibTorch 2.11 is used if SCALETRAIN_TORCH names its folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(ca-certificates ccache cmake g++ git libarchive-dev libcli11-dev libcurl4-openssl-dev
  libdeflate-dev libgif-dev libgloo-dev libjpeg62-turbo-dev libjs-dygraphs liblmdb-dev libpcre2-dev
  libpng-dev libsentencepiece-dev libsqlite3-dev libssl-dev libtiff-dev libturbojpeg0-dev
  libutf8proc-dev libwebp-dev libxxhash-dev mold ninja-build nlohmann-json3-dev python3 python3-venv)
tests=none
peer=
cuda=OFF
[ ! -e /dev/nvidiactl ] || cuda=ON
while [[ "${1:-}" == -* ]]; do
  case "$1" in
  --tests) tests=all ;;
  --unit) tests=unit ;;
  --cuda) cuda=ON ;;
  --peer)
    shift
    peer=${1:-}
    if [ ! -e "scripts/requirements-peer-$peer.txt" ]; then
      known=(scripts/requirements-peer-*.txt)
      known=("${known[@]#*-peer-}")
      echo "setup: --peer: \"$peer\" is no peer; use one of: ${known[*]%.txt}" >&2
      exit 2
    fi
    ;;
  *)
    echo "usage: scripts/setup.sh [--tests | --unit] [--cuda] [TARGET...] | --peer NAME" >&2
    exit 2
    ;;
  esac
  shift
done
case $tests in
unit) packages+=(doctest-dev) ;;
all)
  packages+=(bible-kjv bible-kjv-text chromium clang-14 clang-format-14 clang-tidy-14 doctest-dev fish
    groff-base iproute2 libclang-rt-14-dev man-db munge shellcheck slurm-wlm strace zsh)
  cuda=ON # the Python peers load LibTorch's CUDA libraries, and the kernels are to compile
  ;;
esac

say() { printf 'setup: %s\n' "$*" >&2; }

# install VENV FILE...: a virtual environment with the packages of the requirement files, unless it
# has them. uv downloads and unpacks several at a time: 34 s where pip took 130. Of LibTorch's own
# dependencies those are left out that torch.compile alone needs.
install() {
  local venv=$1
  shift
  [ -x "$venv/bin/python" ] || /usr/bin/python3 -m venv "$venv"
  if cat "$@" | cmp -s - "$venv/installed"; then
    return
  fi
  say "installing $* into $venv"
  [ -x "$venv/bin/uv" ] ||
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r scripts/requirements-uv.txt
  local file
  for file in "$@"; do
    local flags=()
    [ "$file" != scripts/requirements-torch-cpu.txt ] || flags=(--no-deps)
    [[ "$venv" == */peer-* ]] || flags+=(--override scripts/requirements-left-out.txt)
    "$venv/bin/uv" pip install --quiet --no-cache --python "$venv/bin/python" "${flags[@]}" -r "$file"
  done
  cat "$@" >"$venv/installed"
}

if [ -n "$peer" ]; then
  install ".deps/peer-$peer" "scripts/requirements-peer-$peer.txt"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ]; then
    say "these Debian packages are missing; install them and run this again:"
    say "  sudo apt-get install --no-install-recommends ${missing[*]}"
    exit 1
  fi
  say "installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
fi

requirements=(scripts/requirements.txt)
if [ $cuda = ON ] || [ -e .deps/venv/with-cuda ]; then
  requirements+=(scripts/requirements-torch.txt)
else
  requirements+=(scripts/requirements-torch-cpu.txt)
fi
if [ $tests = all ] || [ -e .deps/venv/with-tests ]; then
  requirements+=(scripts/requirements-test.txt)
fi
install .deps/venv "${requirements[@]}"
[ $cuda = OFF ] || touch .deps/venv/with-cuda
if [ $tests = all ]; then
  touch .deps/venv/with-tests
  # The tests' object store has pins of its own.
  install .deps/swift scripts/requirements-swift.txt
fi

# A folder that was configured with tests or CUDA keeps them.
configured_with() { grep -qs "^SCALETRAIN_WITH_$1:BOOL=ON" build/release/CMakeCache.txt; }
with_tests=OFF
if [ $tests != none ] || configured_with TESTS; then with_tests=ON; fi
if configured_with CUDA; then cuda=ON; fi
options="-DSCALETRAIN_WITH_TESTS=$with_tests -DSCALETRAIN_WITH_CUDA=$cuda"
if [ ! -e build/release/build.ninja ] || [ "$options" != "$(cat build/release/configured 2>/dev/null)" ]; then
  say "configuring build/release"
  # shellcheck disable=SC2086 # two words
  cmake --preset release $options >/dev/null
  echo "$options" >build/release/configured
fi
if ! ninja -C build/release -n "$@" | grep -q 'no work to do'; then
  say "building build/release: ${*:-all}"
fi
cmake --build --preset release --target "${@:-all}" -- --quiet
