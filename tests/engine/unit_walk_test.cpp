#include "lib/engine/unit_walk.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>

namespace scaletrain::engine {
namespace {

using parallel::Pass;

// Writes down what it is called for: "+0" enters unit 0, "-0" leaves it, "b" of a backward.
class WrittenHooks : public parallel::UnitHooks {
 public:
  void enter(std::size_t unit, Pass pass) override { write('+', unit, pass); }
  void leave(std::size_t unit, Pass pass) override { write('-', unit, pass); }
  void end_backward() override { text += " end"; }
  bool exchanges() const override { return true; }

  std::string text;

 private:
  void write(char what, std::size_t unit, Pass pass) {
    text += fmt::format(" {}{}{}", what, unit, pass == Pass::kBackward ? "b" : "");
  }
};

// Three units that double their input; the first `frozen` have nothing to train.
std::string walked(Pass pass, std::size_t frozen) {
  WrittenHooks hooks;
  UnitWalk walk(&hooks, 3);
  const at::Tensor weight = at::ones({2}).requires_grad_(true);
  units::Flow flow{at::ones({2})};
  for (std::size_t unit = 0; unit < 3; ++unit) {
    flow = walk.run(unit, pass, [&]() -> units::Flow {
      // A second output, which the loss uses too.
      return {flow[0] * 2 * (unit < frozen ? weight.detach() : weight), flow[0] + 1};
    });
  }
  if (pass != Pass::kForward) return hooks.text;
  walk.begin_backward();
  (flow[0] + flow[1]).sum().backward();
  walk.end_backward();
  return hooks.text;
}

}  // namespace

TEST_CASE("units are entered one by one, and in backward when a gradient reaches them") {
  CHECK(walked(Pass::kEvaluation, 0) == " +0 -0 +1 -1 +2 -2");
  CHECK(walked(Pass::kForward, 0) == " +0 -0 +1 -1 +2 -2 +2b -2b +1b -1b +0b -0b end");
  // No gradient goes further down than to the first unit that is trained.
  CHECK(walked(Pass::kForward, 2) == " +0 -0 +1 -1 +2 -2 +2b -2b end");
}

TEST_CASE("without hooks a unit just runs") {
  UnitWalk walk(nullptr, 1);
  CHECK_FALSE(walk.exchanges());
  const units::Flow flow = walk.run(0, Pass::kForward, [] { return units::Flow{at::ones({1})}; });
  CHECK(flow.size() == 1);
  walk.begin_backward();
  walk.end_backward();
}

}  // namespace scaletrain::engine
