#include "lib/train/run/whole_tensors.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cstring>

#include "tests/dist/ranks.h"

namespace scaletrain::train {
namespace {

using namespace std::chrono_literals;

// A table of 5 rows, of which rank 0 has 3, and a matrix that is cut by columns.
units::TensorParts parts_of(int rank) {
  const units::TensorRule table{.pattern = "t", .style = units::TensorStyle::kVocabulary};
  const units::TensorRule columns{.pattern = "w", .dimension = 1};
  const units::TensorPlace place{.rank = rank, .ranks = 2};
  return {{"t", units::part_of(table, "t", {5, 2}, place)},
          {"w", units::part_of(columns, "w", {3, 4}, place)}};
}

// -0 among them, which no sum of floats gives back.
NamedTensors wholes() {
  return {{"t", at::arange(10, at::kFloat).neg().view({5, 2})},
          {"w", at::arange(12, at::kFloat).neg().view({3, 4})},
          {"exp_avg/w", at::arange(12, at::kFloat).view({3, 4}) * 3},
          {"exp_avg/norm", at::ones({4})},
          {"step", at::full({}, 7, at::kDouble)}};
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

TEST_CASE("parts of all ranks are the whole tensors, bit for bit, and back") {
  const auto results =
      testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) -> std::string {
        dist::Group group(env, at::kCPU, 30s);
        const units::TensorParts parts = parts_of(group.rank());
        const NamedTensors whole = wholes();
        NamedTensors own = blank_wholes({}, whole), taken;
        for (const char* const name : {"t", "w", "exp_avg/w"}) {
          const std::string of = name == std::string("t") ? "t" : "w";
          own[name] = parts.at(of).of(whole.at(name));
        }
        for (const auto& [name, tensor] : own) taken[name] = tensor.clone().zero_();
        std::string text;
        const NamedTensors gathered = gather_wholes(group, parts, own);
        for (const auto& [name, tensor] : whole) {
          if (!same_bits(gathered.at(name), tensor)) text += name + " ";
        }
        take_parts(parts, whole, taken);
        for (const char* const name : {"t", "w", "exp_avg/w"}) {
          if (!same_bits(taken.at(name), own.at(name))) text += std::string(name) + " taken ";
        }
        if (!taken.at("step").eq(0).item<bool>()) text += "step was taken ";
        if (blank_wholes(parts, own).at("t").sizes() != at::IntArrayRef{5, 2}) text += "blank ";
        if (!gathered.at("step").is_same(own.at("step"))) text += "step was copied ";
        // 4 bytes each of 10 + 12 + 12 + 4 numbers, and 8 of the step.
        if (bytes_of_wholes(parts, own) != 4 * 38 + 8) text += "bytes ";
        group.end("the end");
        return text;
      });
  for (const auto& result : results) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

}  // namespace
}  // namespace scaletrain::train
