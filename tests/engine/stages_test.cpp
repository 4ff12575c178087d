#include "lib/engine/stages.h"

#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <string>

#include "lib/core/error.h"

namespace scaletrain::engine {
namespace {

// A stem and a head that share an embedding, and four blocks, which have as many elements as their
// number says.
class Tied : public nn::Model {
 public:
  Tied() {
    register_parameter("embedding", at::zeros({6}));
    for (int i = 0; i < 4; ++i) register_parameter("b" + std::to_string(i), at::zeros({i + 1}));
    register_buffer("mean", at::zeros({100}));
  }
  std::vector<units::Unit> units() override {
    std::vector<units::Unit> result{{.name = "stem", .tensors = {"embedding"}, .run = {}}};
    for (int i = 0; i < 4; ++i) {
      result.push_back({.name = "block", .tensors = {"b" + std::to_string(i)}, .run = {}});
    }
    result.push_back({.name = "head", .tensors = {"mean", "embedding"}, .run = {}});
    return result;
  }
};

}  // namespace

TEST_CASE("stages have equal shares of the parameters, buffers not counted") {
  Tied model;
  const std::vector<double> costs = parameter_costs(model.units(), model);
  CHECK(costs == std::vector<double>{6, 1, 2, 3, 4, 6});
  const Stages stages(model.units(), costs, 2);
  CHECK(stages.count() == 2);
  CHECK(stages.begin(0) == 0);
  CHECK(stages.end(0) == 4);  // 12 and 10
  CHECK(stages.begin(1) == 4);
  CHECK(stages.end(1) == 6);
}

TEST_CASE("each tensor is known by the stages that use it, a tied one by several") {
  Tied model;
  const Stages stages(model.units(), parameter_costs(model.units(), model), 3);
  CHECK(stages.tensors().size() == 6);
  CHECK(stages.tensors().at("embedding") == std::vector<int>{0, 2});
  CHECK(stages.tensors().at("mean") == std::vector<int>{2});
  const Stages one(model.units(), parameter_costs(model.units(), model), 1);
  CHECK(one.tensors().at("embedding") == std::vector<int>{0});
}

TEST_CASE("stages of a division from before are taken as they are") {
  Tied model;
  const Stages stages(model.units(), std::vector<std::size_t>{0, 1});
  CHECK(stages.count() == 2);
  CHECK(stages.end(0) == 1);
  CHECK(stages.end(1) == 6);
  CHECK(stages.tensors().at("embedding") == std::vector<int>{0, 1});
}

TEST_CASE("more stages than units are refused") {
  Tied model;
  std::string found;
  try {
    const Stages stages(model.units(), parameter_costs(model.units(), model), 7);
  } catch (const core::RecipeError& error) {
    found = error.what();
  }
  CHECK(found ==
        "/parallel/pipeline: 7 stages of a model that has 6 units\n  use at most 6 stages");
}

}  // namespace scaletrain::engine
