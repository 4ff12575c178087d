#!/usr/bin/env bash
# tidy_first.sh COMPILER ARGUMENT...: the clang-tidy checks that cost little, of sources of lib, launcher
# and app, then the compiler. ccache calls it in place of a compiler (CCACHE_PREFIX) where it has no
# result, so that a source that was found in order is checked again only when it changes.
set -euo pipefail

checks="-*,readability-identifier-naming,bugprone-use-after-move,bugprone-dangling-handle"
checks+=",bugprone-sizeof-expression,performance-move-const-arg,performance-for-range-copy"
checks+=",performance-unnecessary-copy-initialization,cppcoreguidelines-slicing"
checks+=",cppcoreguidelines-pro-type-member-init,cppcoreguidelines-init-variables"
checks+=",cppcoreguidelines-virtual-class-destructor"

for argument in "$@"; do
  case "$argument" in
  tests/* | third_party/* | */tests/* | */third_party/*) ;;
  *.cpp)
    found=$(clang-tidy-14 --quiet --checks="$checks" "$argument" -- "$@" 2>&1) || {
      printf '%s\n' "$found" >&2
      exit 1
    }
    ;;
  esac
done
exec "$@"
