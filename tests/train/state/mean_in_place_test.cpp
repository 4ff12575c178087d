#include "lib/train/state/mean_in_place.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/train/build/build.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {

TEST_CASE("the model has the mean's values for a while, and then its own again") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const auto run = build_run(tiny.recipe({"ema={}"}), {}, std::nullopt, {});
          const at::Tensor weight = run->learner.tensors().at("head.weight");
          const at::Tensor own = weight.clone();
          run->means[0]->tensors().at("head.weight").fill_(0.5);
          std::string said;
          {
            const MeanInPlace in_place(*run, *run->means[0]);
            said = fmt::format("{}", weight[0][0].item<float>());
          }
          return said + (at::equal(weight, own) ? ", then its own" : ", then another");
        }) == "0.5, then its own");
}

}  // namespace scaletrain::train
