// Small models on layouts, whose jobs are planned (lib/train/simulate/job_plan.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/parallel/parallel.h"

namespace scaletrain::testing {

using PlanOptions = std::map<std::string, recipe::Component::Value>;

// 11 tokens are no multiple of 2 or 4; GPT-2's first and last unit share a tensor.
inline const PlanOptions kGpt2{{"vocab_size", std::int64_t{11}}, {"positions", std::int64_t{8}},
                               {"dim", std::int64_t{16}},        {"depth", std::int64_t{6}},
                               {"heads", std::int64_t{4}},       {"dropout", 0.1}};
inline const PlanOptions kLlama{{"vocab_size", std::int64_t{11}}, {"positions", std::int64_t{8}},
                                {"dim", std::int64_t{32}},        {"depth", std::int64_t{6}},
                                {"heads", std::int64_t{8}},       {"kv_heads", std::int64_t{4}},
                                {"hidden", std::int64_t{24}}};
inline const PlanOptions kMixtral{{"vocab_size", std::int64_t{11}}, {"positions", std::int64_t{8}},
                                  {"dim", std::int64_t{16}},        {"depth", std::int64_t{6}},
                                  {"heads", std::int64_t{4}},       {"kv_heads", std::int64_t{2}},
                                  {"hidden", std::int64_t{24}},     {"experts", std::int64_t{4}}};
inline const PlanOptions kVit{{"patch_size", std::int64_t{8}},
                              {"dim", std::int64_t{16}},
                              {"depth", std::int64_t{6}},
                              {"heads", std::int64_t{4}}};

inline recipe::Parallel shards(int shard, const char* level) {
  recipe::Parallel parallel;
  parallel.shard = shard;
  parallel.shard_level = level;
  return parallel;
}

inline recipe::Parallel tensors(int tensor, bool sequence) {
  recipe::Parallel parallel;
  parallel.tensor = tensor;
  parallel.sequence = sequence;
  return parallel;
}

// `parallel` whose ranks share experts too.
inline recipe::Parallel experts(int expert, recipe::Parallel parallel = {}) {
  parallel.expert = expert;
  return parallel;
}

inline recipe::Parallel rings(int context, recipe::Parallel parallel = {}) {
  parallel.context = context;
  return parallel;
}

inline recipe::Parallel stages(int pipeline, const char* schedule) {
  recipe::Parallel parallel;
  parallel.pipeline = pipeline;
  parallel.schedule = schedule;
  return parallel;
}

inline recipe::Parallel stages_in_parts(const char* level, const char* schedule) {
  recipe::Parallel parallel = stages(2, schedule);
  parallel.shard = 2;
  parallel.shard_level = level;
  return parallel;
}

inline recipe::Parallel narrow(recipe::Parallel parallel) {
  parallel.types = recipe::ShardTypes{.parameters = "bf16", .reduce = "bf16"};
  return parallel;
}

}  // namespace scaletrain::testing
