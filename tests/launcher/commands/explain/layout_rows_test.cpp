#include "launcher/commands/explain/layout_rows.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

Json rank_of(int number) {
  return {{"rank", number},
          {"units", {"stem", "head", 82}},
          {"held", 1},
          {"bytes",
           {{"parameters", 2'160'000'000},
            {"gathered", 6'900'000'000},
            {"gradients", 999},
            {"optimizer", 0},
            {"activations", 12'000}}},
          {"traffic",
           {{{"axis", "shard"},
             {"what", "parameters"},
             {"kind", "all-gather"},
             {"ranks", 128},
             {"nodes", 16},
             {"calls", 163},
             {"bytes", 551'000'000'000},
             {"sent_bytes", 547'000'000'000}},
            {{"axis", "tensor"},
             {"what", "activations"},
             {"kind", "all-reduce"},
             {"ranks", 8},
             {"nodes", 1},
             {"calls", 1},
             {"bytes", 1'000},
             {"sent_bytes", 1'750}}}}};
}

std::string text_of(const std::vector<Explained>& rows) {
  std::string text;
  for (const Explained& row : rows) text += row.name + " | " + row.value + " | " + row.from + "\n";
  return text;
}

TEST_CASE("a layout's bytes are rows by kind, without those that there are none of") {
  const Json layout{{"per_device", 1}, {"ranks", {rank_of(0)}}};
  CHECK(text_of(memory_rows(layout)) ==
        "all | 9.06 GB | \n"
        "parameters | 2.16 GB | and buffers; it runs 82 units, stem to head\n"
        "gathered | 6.9 GB | parameters of other ranks, two units at a time\n"
        "gradients | 999 bytes | of the parameters that the rank updates\n"
        "activations | 12 kB | of 1 micro-batch of 1 in progress\n");
}

TEST_CASE("gradients that wait for their exchange have a row") {
  Json rank = rank_of(0);
  rank["bytes"]["unreduced"] = 2'000;
  const Json layout{{"per_device", 1}, {"ranks", {rank}}};
  const std::vector<Explained> rows = memory_rows(layout);
  CHECK(rows.at(0).value == "9.06 GB");
  CHECK(rows.at(5).name == "unreduced");
  CHECK(rows.at(5).from == "gradients in buckets or blocks that are not reduced yet");
}

TEST_CASE("what lies on the host, or in a file, is no memory of the device") {
  Json rank = rank_of(0);
  rank["bytes"]["optimizer"] = 4'000'000'000;
  const Json layout{{"per_device", 1}, {"ranks", {rank}}};
  CHECK(text_of(memory_rows(layout,
                            {.activations = true, .optimizer = true, .optimizer_folder = {}})) ==
        "all | 9.06 GB | on the device\n"
        "parameters | 2.16 GB | and buffers; it runs 82 units, stem to head\n"
        "gathered | 6.9 GB | parameters of other ranks, two units at a time\n"
        "gradients | 999 bytes | of the parameters that the rank updates\n"
        "activations | 12 kB | of 1 micro-batch of 1 in progress, before most of them are moved to "
        "the host\n"
        "host: gradients | 999 bytes | copies for the update\n"
        "host: weights | 999 bytes | copies for the update\n"
        "host: optimizer | 4 GB | state of the optimizer for these parameters\n");
  CHECK(text_of(memory_rows(
            layout, {.optimizer = true, .parameters = true, .optimizer_folder = "/nvme"})) ==
        "all | 6.9 GB | on the device\n"
        "gathered | 6.9 GB | parameters of other ranks, two units at a time\n"
        "gradients | 999 bytes | of the parameters that the rank updates\n"
        "activations | 12 kB | of 1 micro-batch of 1 in progress\n"
        "host: gradients | 999 bytes | copies for the update\n"
        "host: parameters | 2.16 GB | and buffers; it runs 82 units, stem to head\n"
        "file: optimizer | 4 GB | state of the optimizer for these parameters\n");
}

TEST_CASE("exchanges are rows with their calls, and say whether they stay inside a node") {
  const Json layout{{"per_device", 1}, {"ranks", {rank_of(0)}}};
  CHECK(text_of(traffic_rows(layout)) ==
        "shard, parameters | 551 GB of 163 all-gathers | 128 ranks on 16 nodes, each sends 547 GB\n"
        "tensor, activations | 1 kB of 1 all-reduce | 8 ranks inside a node, each sends 1.75 kB\n");
}

TEST_CASE("with several ranks each row names its ranks") {
  const Json layout{{"per_device", 1}, {"ranks", {rank_of(0), rank_of(4)}}};
  CHECK(memory_rows(layout).size() == 10);
  CHECK(memory_rows(layout)[5].name == "rank 4: all");
  CHECK(traffic_rows(layout)[2].name == "rank 4: shard, parameters");
}

}  // namespace
}  // namespace scaletrain::launcher
