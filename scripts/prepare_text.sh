#!/usr/bin/env bash
# Prepares a public-domain text for recipes/text_gpt.json: the King James Bible as token files.
#
#   scripts/prepare_text.sh [FOLDER] [FLAG...]    FOLDER is text; flags are those of
#                                                 scaletrain data tokenize, such as --tokenizer
#
# The text comes from Debian's packages bible-kjv-text and bible-kjv: the former is compressed, and
# the latter's program prints it. Where they are not installed they are downloaded by apt-get into
# .deps/bible-kjv, which needs no root. Every chapter is a document; chapters 10, 30, 50, ... of the
# 1,189 are for validation (FOLDER/val.jsonl), the others for training (FOLDER/train.jsonl). What is
# there already is left alone, so a second run is quick.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=text
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  folder=$1
  shift
fi

say() { printf 'prepare_text: %s\n' "$*" >&2; }

if [ -e "$folder/train.tokens.json" ] && [ -e "$folder/val.tokens.json" ]; then
  say "$folder has its tokens already: delete it to prepare them anew"
  exit 0
fi

scaletrain=$here/build/release/bin/scaletrain
if [ ! -x "$scaletrain" ] && ! scaletrain=$(command -v scaletrain); then
  say "there is no scaletrain: build it with scripts/setup.sh"
  exit 1
fi

# Sets `bible`, a command that prints verses.
find_bible() {
  if command -v bible >/dev/null && [ -e /usr/lib/bible.data ]; then
    bible=(bible)
    return
  fi
  local packages=$here/.deps/bible-kjv
  if [ ! -e "$packages/done" ]; then
    say "downloading bible-kjv and bible-kjv-text (2.5 MB) into $packages"
    rm -rf "$packages"
    mkdir -p "$packages"
    # Without package lists there is nothing to download from; only root can fetch them.
    if ! (cd "$packages" && apt-get download -qq bible-kjv bible-kjv-text 2>error); then
      if [ "$(id -u)" != 0 ]; then
        cat "$packages/error" >&2
        say "apt-get download failed; if its lists are missing, run: sudo apt-get update"
        exit 1
      fi
      apt-get update -qq
      (cd "$packages" && apt-get download -qq bible-kjv bible-kjv-text)
    fi
    for package in "$packages"/*.deb; do dpkg-deb -x "$package" "$packages"; done
    touch "$packages/done"
  fi
  bible=("$packages/usr/bin/bible" -p "$packages/usr/lib")
}

# A line "Ge1:1 In the beginning ..." a verse to a line {"text": ...} a chapter.
chapters() {
  awk -v train="$folder/train.jsonl" -v val="$folder/val.jsonl" '
    function finish() {
      if (text == "") return
      ++chapters
      print "{\"text\": \"" text "\"}" > (chapters % 20 == 10 ? val : train)
      text = ""
    }
    {
      place = $1
      chapter = place
      sub(/:.*/, "", chapter)
      verse = substr($0, length(place) + 2)
      gsub(/["\\]/, "\\\\&", verse)
      if (chapter != last) finish()
      last = chapter
      text = text (text == "" ? "" : "\\n") verse
    }
    END {
      finish()
      if (chapters != 1189) {
        print "prepare_text: " chapters " chapters where 1189 belong" > "/dev/stderr"
        exit 1
      }
    }'
}

mkdir -p "$folder"
if [ ! -e "$folder/train.jsonl" ] || [ ! -e "$folder/val.jsonl" ]; then
  find_bible
  say "writing $folder/train.jsonl and $folder/val.jsonl"
  rm -f "$folder"/{train,val}.jsonl
  if ! printed=$("${bible[@]}" -f Gen1:1-Rev22:21); then
    say "${bible[0]} failed; it needs the package libreadline8"
    exit 1
  fi
  if ! chapters <<<"$printed"; then
    rm -f "$folder"/{train,val}.jsonl
    exit 1
  fi
fi
for name in train val; do
  "$scaletrain" data tokenize "$folder/$name.jsonl" --out "$folder" --name "$name" \
    --tokens-per-file 1000000 --overwrite "$@"
done
