// What ranks of whole runs ask of their communicators, with evaluation, saves and the vote: on each
// one all its ranks ask for the same in the same order, as NCCL needs it. A run is a line.
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/dist/ranks.h"
#include "tests/long_form.h"
#include "tests/train/run/run_support.h"
#include "tests/train/simulate/recorded.h"

namespace scaletrain::train::whole_runs_test {
namespace {

using Json = nlohmann::json;

struct Case {
  const char* name;
  std::vector<std::string> changes;  // as --set takes them
  std::vector<const char*> kinds;    // of calls that are seen, c10d's names
  int ranks = 4;
};

constexpr const char* kReduce = "allreduce_";
constexpr const char* kGather = "_allgather_base_";
constexpr const char* kScatter = "_reduce_scatter_base_";
constexpr const char* kExchange = "alltoall_base_";
constexpr const char* kSend = "broadcast_";
constexpr const char* kOneWriter = R"(checkpoint.writers="rank_0")";
constexpr const char* kAllWrite = R"(checkpoint.writers="all")";

const char* const kMixtral =
    R"(model={"name": "mixtral", "vocab_size": 50, "positions": 16, "dim": 16, "depth": 2,
              "heads": 4, "hidden": 24, "experts": 4, "router_bias_rate": 0.01})";

std::string optimizer(const char* name) {
  return fmt::format(R"(optimizer={{"name": "{}", "lr": 0.01}})", name);
}

// Two ranks where more show nothing else.
std::vector<Case> cases() {
  const std::string shards = R"(parallel={"shard": 2})";
  std::vector<Case> all{
      {"copies", {}, {kReduce}, 2},
      {"bf16, saved by one rank", {R"(compress="bf16")", kOneWriter}, {kReduce}, 2},
      {"int8, saved by all", {R"(compress="int8")", kAllWrite}, {kGather}, 2},
      {"powersgd", {R"(compress="powersgd")"}, {kReduce}, 2},
      {"shards", {shards}, {kGather, kScatter}, 2},
      {"means, a step at a time",
       {shards, "ema={\"decay\": 0.5}", "checkpoint.async=false"},
       {kGather, kScatter},
       2},
      {"muon, shards of copies", {shards, optimizer("muon")}, {kExchange}},
      {"soap", {shards, optimizer("soap")}, {kExchange}, 2},
      {"lamb", {shards, optimizer("lamb")}, {kReduce}, 2},
      {"sam", {shards, "sam={}"}, {kGather}, 2},
      {"clipped by unit", {shards, "clip={\"adaptive\": 0.01}"}, {kReduce}, 2},
      {"fp16", {shards, "precision=\"fp16\""}, {kReduce}, 2},
      {"rare",
       {shards, R"(sync={"name": "diloco", "steps": 2, "fragments": 2})",
        "validate.every={\"steps\": 2}", "checkpoint.every={\"steps\": 2}"},
       {kReduce}},
      {"experts, muon", {kMixtral, R"(parallel={"expert": 2})", optimizer("muon")}, {kExchange}, 2},
      {"stages", {R"(parallel={"pipeline": 4, "schedule": "zero_bubble"})"}, {kSend}},
      {"rings", {R"(parallel={"context": 4})"}, {kSend}},
      {"shard x sequence",
       {R"(parallel={"shard": 2, "tensor": 2, "sequence": true})"},
       {kReduce, kGather, kScatter}},
      {"pipeline x shard x tensor",
       {R"(parallel={"pipeline": 2, "shard": 2, "tensor": 2})"},
       {kReduce, kGather, kScatter, kSend},
       8},
      {"replica x pipeline x shard, muon",
       {R"(parallel={"pipeline": 2, "shard": 2})", optimizer("muon")},
       {kReduce, kExchange, kSend},
       8},
      {"pipeline x context x tensor",
       {R"(parallel={"pipeline": 2, "context": 2, "tensor": 2, "schedule": "interleaved"})"},
       {kReduce, kSend},
       8},
      {"pipeline x expert x shard",
       {kMixtral, R"(parallel={"pipeline": 2, "expert": 2, "shard": 2})"},
       {kExchange, kScatter, kSend},
       8},
  };
  if (!testing::is_long_form()) return all;
  const std::string quarters = R"(parallel={"shard": 4})";
  const std::vector<Case> more{
      {"shards of 4", {quarters}, {kGather, kScatter}},
      {"muon", {quarters, optimizer("muon")}, {kExchange}},
      {"experts", {kMixtral, R"(parallel={"expert": 4})"}, {kExchange}},
      {"experts of 4, muon",
       {kMixtral, R"(parallel={"expert": 4})", optimizer("muon")},
       {kExchange}},
      {"replica x shard x tensor",
       {R"(parallel={"shard": 2, "tensor": 2, "sequence": true})"},
       {kReduce, kGather, kScatter},
       8},
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

class Runs {
 public:
  Runs() {
    write("train.bin", 1000);
    write("val.bin", 90);  // 5 windows, of which ranks have different numbers
  }

  // All that each rank asks for in the run of `one`, from the first collective to the last.
  std::vector<testing::RankResult> run(const Case& one) const {
    const std::string tokens = R"({{"tokens": "{}"}})";
    std::vector<std::string> changes{
        R"(model={"name": "llama", "vocab_size": 50, "positions": 16, "dim": 16, "depth": 4,
                  "heads": 4, "kv_heads": 4, "hidden": 24})",
        "steps=2",
        R"(batch={"global": 8, "per_device": 1})",
        "validate.every={\"steps\": 1}",
        "checkpoint.every={\"steps\": 1}",
        "log.every={\"steps\": 1}",
        "clip={\"norm\": 0.1}",
        R"(dist.cpu="gloo")",
        "data.train=null",
        "data.train=" + fmt::format(fmt::runtime(tokens), tiny_.path("train.bin")),
        "data.val=null",
        "data.val=" + fmt::format(fmt::runtime(tokens), tiny_.path("val.bin")),
        "data.context=16",
        "output=" + tiny_.path(one.name)};
    changes.insert(changes.end(), one.changes.begin(), one.changes.end());
    const recipe::Recipe recipe = tiny_.recipe(changes);
    return testing::run_ranks(
        {.world_size = one.ranks, .limit_s = 300}, [&](const core::WorkerEnv& env) {
          at::set_num_threads(1);
          testing::Recorder recorder;
          const std::string end = testing::ended(recipe, std::nullopt, env);
          if (end != "code 0 after step 2") return end;
          Json groups = Json::object();
          for (const auto& [group, calls] : recorder.take()) {
            Json& asked = groups[group];
            asked = {{"ranks", calls.front().ranks}, {"calls", Json::array()}};
            for (const testing::RecordedCall& call : calls) {
              // How many rows go to a rank is its own.
              const bool is_even = call.kind != kExchange;
              asked["calls"].push_back({call.kind, is_even ? call.elements : 0});
            }
          }
          return groups.dump();
        });
  }

 private:
  void write(const char* name, int tokens) const {
    std::ofstream file(tiny_.path(name), std::ios::binary);  // of 2 bytes
    for (int i = 0; i < tokens; ++i) file << static_cast<char>((i * i + i / 7) % 50) << '\0';
  }

  testing::TinyRun tiny_;
};

TEST_CASE("in whole runs each communicator's ranks ask it for the same in the same order") {
  const Runs runs;
  for (const Case& one : cases()) {
    CAPTURE(std::string(one.name));
    std::map<std::string, std::vector<Json>> groups;  // what each rank that is there asks of one
    for (const testing::RankResult& rank : runs.run(one)) {
      REQUIRE_MESSAGE(rank.status == 0, rank.text);
      REQUIRE_MESSAGE(rank.text.starts_with('{'), rank.text);
      const Json asked_of = Json::parse(rank.text);
      for (const auto& [group, asked] : asked_of.items()) {
        groups[group].push_back(asked);
      }
    }
    std::set<std::string> kinds;
    for (const auto& [group, asked] : groups) {
      CAPTURE(group);
      CHECK(asked.size() == asked.front().at("ranks").get<std::size_t>());
      for (const Json& other : asked) CHECK(other.dump() == asked.front().dump());
      for (const Json& call : asked.front().at("calls")) kinds.insert(call[0].get<std::string>());
    }
    for (const char* const kind : one.kinds) {
      CAPTURE(kind);
      CHECK(kinds.contains(kind));
    }
  }
}

}  // namespace
}  // namespace scaletrain::train::whole_runs_test
