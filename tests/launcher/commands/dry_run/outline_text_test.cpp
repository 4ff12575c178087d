#include "launcher/commands/dry_run/outline_text.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace scaletrain::launcher {
namespace {

RunOutline small_outline() {
  RunOutline outline{.name = "r", .output = "/runs/r", .ranks = 2};
  outline.global_batch = 32;
  outline.steps = 30;
  outline.validations = 8;
  outline.saves = 3;
  outline.kept = 3;
  outline.checkpoint_bytes = 2e6;
  outline.free_bytes = 8e6;
  outline.notes = {"a note"};
  outline.layout = nlohmann::ordered_json::parse(R"({
      "per_device": 16, "rates": [{"step": 1, "lr": 0.5}],
      "ranks": [{"rank": 0, "units": ["a", "b", 2], "held": 1,
                 "bytes": {"parameters": 1000, "gradients": 0}}]})");
  return outline;
}

TEST_CASE("an outline is printed with its rates, counts, space and memory") {
  CHECK(outline_text(small_outline(), {}) ==
        "ok: r: 2 ranks on 1 node, global batch 32\n"
        "steps: 30, of an epoch: unknown\n"
        "learning rate:\n"
        "  step 1: 0.5\n"
        "validations: 8\n"
        "saves: 3, each of 2 MB, at most 3 on the disk, 8 MB free\n"
        "memory of a rank:\n"
        "  all: 1 kB\n"
        "  parameters: 1 kB (and buffers; it runs 2 units, a to b)\n"
        "note: a note\n");
}

TEST_CASE("values that an outline does not know are unknown in text and null in JSON") {
  RunOutline outline{.name = "r", .output = "/runs/r"};
  CHECK(outline_text(outline, {}) ==
        "ok: r: 1 rank on 1 node, global batch 0\n"
        "steps: unknown, of an epoch: unknown\n"
        "learning rate: unknown\n"
        "validations: unknown\n"
        "saves: unknown\n");
  const nlohmann::ordered_json json = outline_json(outline);
  for (const char* name : {"global_batch", "steps", "steps_per_epoch", "rates", "saves"}) {
    CHECK_MESSAGE(json.at(name).is_null(), name);
  }
  CHECK(outline_json(small_outline()).at("memory").dump() ==
        R"([{"rank":0,"bytes":{"parameters":1000,"gradients":0}}])");
}

}  // namespace
}  // namespace scaletrain::launcher
