#include "lib/optim/coded_average.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>

#include "lib/recipe/catalog/lists.h"

namespace scaletrain::optim {
namespace {

recipe::Optimizer coded_config(const char* row, std::int64_t min_size) {
  recipe::Optimizer config;
  recipe::choose(config, *recipe::optimizers().find(row));
  config.options.at("min_8bit_size") = min_size;
  return config;
}

// The weights and the scales of the averages after two steps of four blocks, in this layout, as a
// piece that begins at `begin`.
std::pair<at::Tensor, at::Tensor> after_two_steps(const char* row, at::MemoryFormat layout,
                                                  std::int64_t begin) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{5});
  const at::Tensor weight =
      at::ones({8, 5, 5, 5}).contiguous(layout).requires_grad_();  // 1000 numbers
  const auto optimizer =
      make_optimizer(coded_config(row, 0), {{.name = "w", .tensor = weight, .begin = begin}});
  for (int step = 0; step < 2; ++step) {
    // Each block has a size of its own.
    const at::Tensor sizes = at::linspace(0, 6, 1000).exp();
    weight.mutable_grad() =
        (at::randn({1000}, generator) * sizes).view({8, 5, 5, 5}).contiguous(layout);
    optimizer->step(0.1);
  }
  return {weight.detach(), optimizer->state().at("exp_avg_scales/w").tensor.clone()};
}

}  // namespace

// What is contiguous goes block by block, all else by operations on the whole.
TEST_CASE("blocks that are updated at once are those of the whole, wherever a piece begins") {
  for (const char* const row : {"adamw_8bit", "lion_8bit"}) {
    for (const std::int64_t begin : {0, 100, 256, 300}) {
      CAPTURE(row);
      CAPTURE(begin);
      const auto at_once = after_two_steps(row, at::MemoryFormat::Contiguous, begin);
      const auto whole = after_two_steps(row, at::MemoryFormat::ChannelsLast, begin);
      CHECK((at::allclose(at_once.second, whole.second, 1e-5)));
      // A number that lies between two values of a code may be rounded either way.
      const at::Tensor far = (at_once.first - whole.first).abs().gt(1e-3);
      CHECK(far.sum().item<std::int64_t>() <= 5);
    }
  }
}

TEST_CASE("a tensor of as many numbers as the recipe says is coded, a smaller one is not") {
  for (const char* const row : {"adamw_8bit", "lion_8bit"}) {
    CAPTURE(row);
    const at::Tensor weight = at::ones({4}).requires_grad_();
    const NamedParameter parameter{.name = "w", .tensor = weight};
    CHECK(make_optimizer(coded_config(row, 4), {parameter})->state().contains("exp_avg_codes/w"));
    CHECK(make_optimizer(coded_config(row, 5), {parameter})->state().contains("exp_avg/w"));
  }
}

}  // namespace scaletrain::optim
