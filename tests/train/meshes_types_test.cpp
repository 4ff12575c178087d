// The numbers that ranks of "shard" exchange, beside every other axis: what is gathered as bf16 has
// the bits of autocast's copies, and sums of bf16 gradients are rounded ones.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/dist/ranks.h"
#include "tests/train/meshes_support.h"

namespace scaletrain::testing {
namespace {

using namespace std::chrono_literals;

struct TypedMesh {
  const char* name;
  recipe::Parallel parallel;
  bool has_experts = false;
};

// "shard": 2, on four ranks.
template <class Change>
recipe::Parallel beside_shard(const Change& change) {
  recipe::Parallel parallel;
  parallel.shard = 2;
  change(parallel);
  return parallel;
}

std::vector<TypedMesh> typed_meshes() {
  using Parallel = recipe::Parallel;
  std::vector<TypedMesh> meshes{
      {"replica", beside_shard([](Parallel&) {})},
      {"tensor", beside_shard([](Parallel& one) { one.tensor = 2; })},
      {"sequence", beside_shard([](Parallel& one) {
         one.tensor = 2;
         one.sequence = true;
       })},
      {"context", beside_shard([](Parallel& one) { one.context = 2; })},
      {"expert", beside_shard([](Parallel& one) { one.expert = 4; }), true},
  };
  for (const char* const schedule : {"1f1b", "interleaved", "zero_bubble"}) {
    meshes.push_back({schedule, beside_shard([schedule](Parallel& one) {
                        one.pipeline = 2;
                        one.schedule = schedule;
                      })});
  }
  return meshes;
}

MeshCase typed_case(bool has_experts) {
  ModelOptions options = small_llama();
  options["dim"] = std::int64_t{32};
  if (has_experts) options["experts"] = std::int64_t{4};
  return {.name = "",
          .model = has_experts ? "mixtral" : "llama",
          .options = options,
          .precision = "bf16"};
}

using Gradients = std::map<std::string, at::Tensor>;

struct TypedCourse {
  double loss = 0;             // of the second step
  Gradients first, gradients;  // of the first step and the second
  bool is_fp32 = true;
};

TypedCourse typed_course(const MeshCase& one, const recipe::Parallel& parallel,
                         std::unique_ptr<dist::Group> group) {
  MeshJob job(one, parallel, std::move(group));
  const std::int64_t readers = job.run.mesh->plan().readers();
  TypedCourse course;
  job.step(0, readers);
  course.first = job.whole_gradients();
  job.update();
  job.step(1, readers);
  course.loss = job.loss;
  course.gradients = job.whole_gradients();
  for (const at::Tensor& gradient : job.run.engine->gradients()) {
    course.is_fp32 = course.is_fp32 && gradient.scalar_type() == at::kFloat;
  }
  job.run.mesh->end("the end");
  return course;
}

// Over each tensor's largest number.
double most_apart(const Gradients& one, const Gradients& other) {
  double most = 0;
  for (const auto& [name, gradient] : one) {
    const at::Tensor& expected = other.at(name);
    const double size = std::max(expected.abs().max().item<double>(), 1e-4);
    most = std::max(most, (gradient - expected).abs().max().item<double>() / size);
  }
  return most;
}

std::string compare_types(const TypedMesh& mesh, dist::Group& world) {
  int number = 0;
  const auto course = [&](std::optional<recipe::ShardTypes> types) {
    recipe::Parallel parallel = mesh.parallel;
    parallel.types = std::move(types);
    auto group = std::make_unique<dist::Group>(world, std::vector<int>{0, 1, 2, 3},
                                               fmt::format("{} {}", mesh.name, number++));
    return typed_course(typed_case(mesh.has_experts), parallel, std::move(group));
  };
  const TypedCourse plain = course({});
  const TypedCourse narrow = course(recipe::ShardTypes{.parameters = "bf16", .reduce = "fp32"});
  const TypedCourse rounded = course(recipe::ShardTypes{.parameters = "bf16", .reduce = "bf16"});
  std::string wrong;
  const auto check = [&](bool holds, const char* what, double value) {
    if (!holds) wrong += fmt::format("{}: {} {:.3g}; ", mesh.name, what, value);
  };
  check(plain.is_fp32 && narrow.is_fp32 && rounded.is_fp32, "gradients of another type", 0);
  check(narrow.loss == plain.loss, "another loss than autocast's", narrow.loss / plain.loss);
  const double own = most_apart(narrow.gradients, plain.gradients);
  check(own == 0, "other gradients than autocast's", own);
  // Later on a router would send some tokens to other experts.
  const double apart = most_apart(rounded.first, plain.first);
  check(apart > 0 && apart < 1.0 / 32, "rounded sums", apart);
  return wrong;
}

TEST_CASE("the numbers that ranks of shard exchange go with every other axis") {
  for (const auto& result : run_ranks({.world_size = 4, .limit_s = 280}, [](const auto& env) {
         at::set_num_threads(1);
         dist::Group world(env, at::kCPU, 60s);
         std::string text;
         for (const TypedMesh& mesh : typed_meshes()) text += compare_types(mesh, world);
         world.end("the end");
         return text;
       })) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

}  // namespace
}  // namespace scaletrain::testing
