#!/usr/bin/env bash
# Installs what scaletrain needs and builds the preset "release" into build/release.
#
#   scripts/setup.sh [--tests] [TARGET...]    without targets everything is built
#
# Debian packages through apt-get (as root; otherwise the missing ones are named), LibTorch and
# Python packages into .deps/venv. What is there already is left alone, so a second run is quick.
# An existing LibTorch 2.11 is used where SCALETRAIN_TORCH names its folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(ca-certificates ccache cmake g++ git libarchive-dev libcli11-dev libcurl4-openssl-dev
  libdeflate-dev libgif-dev libgloo-dev libjpeg62-turbo-dev liblmdb-dev libpcre2-dev libpng-dev
  libsentencepiece-dev libssl-dev libtiff-dev libturbojpeg0-dev libutf8proc-dev libwebp-dev libxxhash-dev mold ninja-build nlohmann-json3-dev python3
  python3-venv)
requirements=(-r scripts/requirements.txt)
if [ "${1:-}" = --tests ]; then
  shift
  packages+=(bible-kjv bible-kjv-text clang-14 clang-format-14 clang-tidy-14 doctest-dev fish groff-base iproute2
    libclang-rt-14-dev man-db munge shellcheck slurm-wlm strace zsh)
  requirements+=(-r scripts/requirements-test.txt)
  with_tests=ON
else
  with_tests=OFF
fi
case "${1:-}" in
-*)
  echo "usage: scripts/setup.sh [--tests] [TARGET...]" >&2
  exit 2
  ;;
esac

say() { printf 'setup: %s\n' "$*" >&2; }

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

# The object store of the tests, apart from what is compared with: its pins are its own.
# It is installed at the same time, since pip keeps one core busy.
swift=.deps/swift
if [ $with_tests = ON ] && ! cmp -s scripts/requirements-swift.txt $swift/installed; then
  say "installing OpenStack Swift into $swift"
  {
    [ -x $swift/bin/python ] || /usr/bin/python3 -m venv $swift
    $swift/bin/pip install --quiet --disable-pip-version-check -r scripts/requirements-swift.txt
    cp scripts/requirements-swift.txt $swift/installed
  } &
  swift_install=$!
fi

venv=.deps/venv
[ -x $venv/bin/python ] || /usr/bin/python3 -m venv $venv
if ! cat scripts/requirements.txt scripts/requirements-test.txt | cmp -s - $venv/installed ||
   { [ $with_tests = ON ] && [ ! -e $venv/with-tests ]; }; then
  say "installing LibTorch and Python packages into $venv (about 5 GB)"
  $venv/bin/pip install --quiet --disable-pip-version-check "${requirements[@]}"
  cat scripts/requirements.txt scripts/requirements-test.txt > $venv/installed
  [ $with_tests = OFF ] || touch $venv/with-tests
fi
[ -z "${swift_install:-}" ] || wait "$swift_install"

# A configured folder that has the tests keeps them.
if [ ! -e build/release/build.ninja ] || { [ $with_tests = ON ] && [ ! -e build/release/with-tests ]; }; then
  say "configuring build/release"
  cmake --preset release -DSCALETRAIN_WITH_TESTS=$with_tests >/dev/null
  [ $with_tests = OFF ] || touch build/release/with-tests
fi
if ! ninja -C build/release -n "$@" | grep -q 'no work to do'; then
  say "building build/release: ${*:-all}"
fi
cmake --build --preset release --target "${@:-all}" -- --quiet
