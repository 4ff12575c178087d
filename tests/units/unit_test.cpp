#include "lib/units/unit.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace scaletrain::units {
namespace {

// Multiplies the main tensor and hands an auxiliary one on.
Unit times(std::string name, double factor) {
  return {.name = std::move(name), .tensors = {}, .run = [factor](Flow input, const Context&) {
            input[0] = input[0] * factor;
            return input;
          }};
}

}  // namespace

TEST_CASE("the fold gives each unit what the one before has returned, in their order") {
  const Unit add_one{.name = "add", .tensors = {}, .run = [](const Flow& input, const Context&) {
                       return Flow{input[0] + 1, input[0]};
                     }};
  const Flow output =
      run(std::vector<Unit>{times("a", 3), add_one, times("b", 10)}, {at::tensor({2.0})}, {});
  REQUIRE(output.size() == 2);
  CHECK(output[0].item<double>() == 70);  // (2 * 3 + 1) * 10
  CHECK(output[1].item<double>() == 6);
}

TEST_CASE("every unit gets the context of the pass") {
  std::vector<bool> again;
  const Unit look{.name = "look", .tensors = {}, .run = [&](Flow input, const Context& context) {
                    again.push_back(context.again);
                    return input;
                  }};
  run(std::vector<Unit>{look}, {}, {});
  run(std::vector<Unit>{look, look}, {}, {.again = true});
  CHECK((again == std::vector<bool>{false, true, true}));
}

TEST_CASE("without units the input is the output") {
  const at::Tensor input = at::ones({2});
  CHECK(run({}, {input}, {})[0].is_same(input));
}

}  // namespace scaletrain::units
