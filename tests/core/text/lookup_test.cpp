#include "lib/core/text/lookup.h"

#include <doctest/doctest.h>

using scaletrain::core::did_you_mean;
using scaletrain::core::edit_distance;
using scaletrain::core::nearest;

TEST_CASE("edit_distance counts insertions, deletions, substitutions and swaps") {
  CHECK(edit_distance("bf16", "bf16") == 0);
  CHECK(edit_distance("bf61", "bf16") == 1);  // a swap
  CHECK(edit_distance("shrads", "shards") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("", "abc") == 3);
}

TEST_CASE("nearest names what was meant, or nothing") {
  CHECK(nearest("bf61", {"bf16", "fp16", "fp32"}) == "bf16");
  CHECK(nearest("optimiser", {"optimizer", "output"}) == "optimizer");
  CHECK(nearest("zebra", {"optimizer", "output"}).empty());
  CHECK(nearest("x", {"lr"}).empty());
  CHECK(nearest("AdamW", {"adam", "adamw"}) == "adamw");  // case does not count
}

TEST_CASE("did_you_mean asks for the near name, and for nothing otherwise") {
  CHECK(did_you_mean("bf61", {"bf16", "fp32"}) == "did you mean \"bf16\"?");
  CHECK(did_you_mean("zebra", {"bf16", "fp32"}).empty());
  // 101 letters, one of them wrong.
  CHECK(did_you_mean(std::string(100, 'a') + "c", {std::string(100, 'a') + "b"}).empty());
}
