#include "lib/optim/mean.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <vector>

#include "tests/count_reads.h"

// tests/parity/regularisation_test.py compares the values with timm's and PyTorch's.
namespace {

using namespace scaletrain;

struct Averaged {
  at::Tensor weight = at::full({2}, 4.0);
  at::Tensor count = at::full({}, 7, at::kLong);
  units::Shards model = units::full_shards({{"weight", weight}, {"count", count}});
};

double mean_of(const optim::Mean& ema) { return ema.state().at("weight").tensor[0].item<double>(); }

const at::Tensor kTaken = at::zeros({}), kLeftOut = at::ones({});

TEST_CASE("the mean begins as a copy, takes the first update whole and then a share of each") {
  Averaged averaged;
  optim::Mean ema({.decay = 0.75}, averaged.model);
  CHECK(mean_of(ema) == 4);
  averaged.weight.fill_(8);
  averaged.count.fill_(8);
  ema.update(0, kTaken);
  CHECK(mean_of(ema) == 8);
  CHECK(ema.state().at("count").tensor.item<int>() == 8);
  averaged.weight.fill_(16);
  ema.update(1, kTaken);
  CHECK(mean_of(ema) == 10);  // 0.75 * 8 + 0.25 * 16
}

TEST_CASE("a step that is left out changes neither the mean nor the count of updates") {
  Averaged averaged;
  optim::Mean ema({.decay = 0.75}, averaged.model);
  averaged.weight.fill_(8);
  ema.update(0, kLeftOut);
  CHECK(mean_of(ema) == 4);
  ema.update(1, kTaken);
  CHECK(mean_of(ema) == 8);  // the first update that counts
  averaged.weight.fill_(16);
  ema.update(2, kLeftOut);
  CHECK(mean_of(ema) == 8);
}

// 1 + 1/1000 of it would be 1 again in bf16.
TEST_CASE("the mean of bf16 weights is fp32") {
  const at::Tensor weight = at::ones({2}, at::kBFloat16);
  optim::Mean ema({.decay = 0.999}, units::full_shards({{"weight", weight}}));
  ema.update(0, kTaken);
  weight.fill_(2);
  ema.update(1, kTaken);
  CHECK((ema.state().at("weight").tensor.scalar_type() == at::kFloat));
  CHECK(mean_of(ema) == doctest::Approx(1.001).epsilon(1e-6));
}

TEST_CASE("between its steps the mean stays as it is") {
  Averaged averaged;
  optim::Mean ema({.decay = 0.75, .every = 3}, averaged.model);
  averaged.weight.fill_(8);
  for (const int step : {0, 1, 3, 4}) {
    CHECK_FALSE(ema.is_due(step));
    ema.update(step, kTaken);
  }
  CHECK(mean_of(ema) == 4);
  CHECK(ema.is_due(5));
  ema.update(5, kTaken);
  CHECK(mean_of(ema) == 8);
}

// Two places are four steps at first, and two later.
TEST_CASE("what every counts may be places that a training reaches later than steps") {
  const auto place = [](std::int64_t steps) { return steps < 8 ? steps / 2 : steps - 4; };
  const auto due = [&](std::int64_t start) {
    const Averaged averaged;
    const optim::Mean mean({.start = start, .every = 2, .place = place}, averaged.model);
    std::vector<int> steps;
    for (int step = 0; step < 12; ++step) {
      if (mean.is_due(step)) steps.push_back(step + 1);
    }
    return steps;
  };
  CHECK(due(0) == std::vector<int>{4, 8, 10, 12});
  CHECK(due(4) == std::vector<int>{4, 8, 10, 12});
  CHECK(due(2) == std::vector<int>{2, 6, 9, 11});
  CHECK(due(13).empty());
}

TEST_CASE("a mean that goes on has the bits of one that was never interrupted") {
  for (const optim::MeanPlan& plan :
       {optim::MeanPlan{.decay = 0.9}, optim::MeanPlan{.decay = 0.9, .warmup = true},
        optim::MeanPlan{}}) {
    Averaged averaged;
    optim::Mean whole(plan, averaged.model);
    for (int step = 0; step < 4; ++step) {
      averaged.weight.mul_(1.37);
      whole.update(step, kTaken);
    }
    optim::Mean second(plan, averaged.model);
    for (const auto& [name, mean] : second.state()) {
      mean.tensor.copy_(whole.state().at(name).tensor);
    }
    second.restore(4);
    averaged.weight.mul_(1.37);
    whole.update(4, kTaken);
    second.update(4, kTaken);
    CHECK(mean_of(second) == mean_of(whole));
  }
}

TEST_CASE("an equal mean takes the weights at its start and then at each of its steps") {
  Averaged averaged;
  optim::Mean swa({.start = 2, .every = 3}, averaged.model);
  for (int step = 0; step < 9; ++step) {
    averaged.weight.fill_(step * step);
    CHECK(swa.is_due(step) == (step == 1 || step == 4 || step == 7));
    swa.update(step, step == 4 ? kLeftOut : kTaken);
  }
  CHECK(mean_of(swa) == 25);  // (1 + 49) / 2
}

TEST_CASE("averages are sharded as the model is, and name what other ranks hold") {
  const at::Tensor weight = at::full({2}, 4.0);
  const units::Shard shard{
      .tensor = weight, .shape = {3}, .slices = {format::range_piece({3}, 1, 3)}, .owned = false};
  optim::Mean ema({.decay = 0.75}, {{"here", shard}, {"elsewhere", {.shape = {5}}}});
  weight.fill_(8);
  ema.update(0, kTaken);
  const units::Shard& mean = ema.state().at("here");
  CHECK((at::equal(mean.tensor, at::full({2}, 8.0))));
  CHECK(mean.shape == shard.shape);
  CHECK((mean.slices == shard.slices));
  CHECK_FALSE(mean.owned);
  CHECK_FALSE(ema.state().at("elsewhere").is_here());
}

TEST_CASE("an update reads nothing back") {
  Averaged averaged;
  optim::Mean ema({.decay = 0.9, .warmup = true}, averaged.model);
  CHECK(testing::count_reads([&] { ema.update(0, kTaken); }) == 0);
}

}  // namespace
