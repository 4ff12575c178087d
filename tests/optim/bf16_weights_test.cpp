#include "lib/optim/bf16_weights.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/recipe/catalog/lists.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::optim {
namespace {

// `row` with its defaults at a learning rate of 1.
recipe::Optimizer rounded_config(const char* row) {
  recipe::Optimizer config;
  choose(config, *recipe::optimizers().find(row));
  return config;
}

NamedParameter rounded_parameter(const std::string& name, at::IntArrayRef shape,
                                 double value = 1.0) {
  return {.name = name, .tensor = at::full(shape, value, at::kBFloat16).requires_grad_(true)};
}

void give_gradient(const NamedParameter& parameter, double value) {
  parameter.tensor.mutable_grad() = at::full_like(parameter.tensor.detach(), value);
}

double mean_weight(const NamedParameter& parameter) {
  return parameter.tensor.detach().to(at::kDouble).mean().item<double>();
}

}  // namespace

// bf16 has 7 bits of fraction: its neighbours of 1 + 2^-10 are 1 and 1 + 2^-7, and an eighth of the
// numbers goes up. Of 65,536 the mean is off by 2^-7 * sqrt(1/8 * 7/8 / 65,536) = 1e-5.
TEST_CASE("stochastic rounding goes to one of two neighbours, and is right on average") {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU).clone();
  generator.set_current_seed(7);
  for (const double sign : {1.0, -1.0}) {
    const double exact = sign * (1 + std::ldexp(1.0, -10));
    const at::Tensor values = at::full({1 << 16}, exact, at::kFloat);
    round_stochastically(values, generator);
    const at::Tensor low = values.eq(sign), high = values.eq(sign * (1 + std::ldexp(1.0, -7)));
    CHECK(low.logical_or(high).all().item<bool>());
    CHECK(high.any().item<bool>());
    CHECK(std::abs(values.to(at::kDouble).mean().item<double>() - exact) < 5e-5);
  }
}

TEST_CASE("what is a bf16 value already is rounded to itself") {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU).clone();
  const at::Tensor values = at::randn({1000}).to(at::kBFloat16).to(at::kFloat);
  const at::Tensor rounded = values.clone();
  round_stochastically(rounded, generator);
  CHECK((at::equal(rounded, values)));
}

// Below 1 the next bf16 value is 2^-8 = 0.0039 away: 1 - 0.0001 is rounded to 1.
TEST_CASE("small updates arrive where plain bf16 would stand still") {
  const at::Tensor plain = at::ones({}, at::kBFloat16);
  for (int i = 0; i < 200; ++i) plain.sub_(1e-4);
  CHECK(plain.item<double>() == 1);

  const NamedParameter exact{.name = "w", .tensor = at::ones({64, 64}).requires_grad_(true)};
  const auto reference = make_optimizer(rounded_config("adamw"), {exact});
  const NamedParameter kahan = rounded_parameter("w", {64, 64});
  const auto with_kahan =
      make_bf16_optimizer(rounded_config("adamw"), {kahan}, Rounding::kKahan, 1);
  const NamedParameter stochastic = rounded_parameter("w", {64, 64});
  const auto with_draws =
      make_bf16_optimizer(rounded_config("adamw"), {stochastic}, Rounding::kStochastic, 1);
  for (int i = 0; i < 200; ++i) {
    for (const NamedParameter& one : {exact, kahan, stochastic}) give_gradient(one, 0.5);
    reference->step(1e-4);
    with_kahan->step(1e-4);
    with_draws->step(1e-4);
  }
  const double wanted = mean_weight(exact);
  CHECK(wanted == doctest::Approx(0.98).epsilon(1e-4));
  CHECK(std::abs(mean_weight(kahan) - wanted) < std::ldexp(1.0, -9));  // half of the last bit
  // 200 draws of up to 2^-8 each: 2^-9 * sqrt(200) = 0.03 of one weight, 64 times less of the mean.
  CHECK(std::abs(mean_weight(stochastic) - wanted) < 2e-3);
  // What is kept is below 2^-9 and rounded to 8 bits 200 times: 200 * 2^-18 = 7.6e-4.
  const at::Tensor lost = with_kahan->state().at("kahan/w").tensor.to(at::kDouble);
  CHECK((kahan.tensor.detach().to(at::kDouble) + lost).mean().item<double>() ==
        doctest::Approx(wanted).epsilon(7.6e-4));
  CHECK(lost.ne(0).any().item<bool>());
}

TEST_CASE("a step that is left out changes neither weights nor state") {
  for (const Rounding rounding : {Rounding::kStochastic, Rounding::kKahan}) {
    const NamedParameter weight = rounded_parameter("w", {33}, 0.37);
    const auto optimizer = make_bf16_optimizer(rounded_config("adamw"), {weight}, rounding, 1);
    for (int i = 0; i < 5; ++i) {
      give_gradient(weight, 0.1 * i + 0.1);
      optimizer->step(1.7e-3, at::zeros({}));
    }
    const at::Tensor before = weight.tensor.detach().clone();
    units::NamedTensors state = local_tensors(optimizer->state());
    for (auto& [name, tensor] : state) tensor = tensor.clone();
    give_gradient(weight, std::nan(""));
    optimizer->step(1.7e-3, at::ones({}));
    CHECK((at::equal(weight.tensor.detach(), before)));
    for (const auto& item : local_tensors(optimizer->state())) {
      CAPTURE(item.first);
      CHECK((at::equal(item.second, state.at(item.first))));
    }
  }
}

TEST_CASE("draws are of the seed, the step and the parameter, and of nothing else") {
  const auto after = [](std::uint64_t seed, const std::vector<std::string>& names, int resume_at) {
    std::vector<NamedParameter> parameters;
    for (const std::string& name : names) parameters.push_back(rounded_parameter(name, {512}));
    const auto optimizer =
        make_bf16_optimizer(rounded_config("sgd"), parameters, Rounding::kStochastic, seed);
    optimizer->resume_at(resume_at);
    for (int i = 0; i < 3; ++i) {
      for (const NamedParameter& one : parameters) give_gradient(one, 1);
      optimizer->step(1e-3);
    }
    return parameters.back().tensor.detach();
  };
  const at::Tensor one = after(1, {"w"}, 0);
  CHECK((at::equal(one, after(1, {"w"}, 0))));
  CHECK((at::equal(one, after(1, {"a", "w"}, 0))));
  CHECK(!(at::equal(one, after(2, {"w"}, 0))));
  CHECK(!(at::equal(one, after(1, {"v"}, 0))));
  CHECK(!(at::equal(one, after(1, {"w"}, 1))));
}

TEST_CASE("a run that goes on from its state ends with the bits of one that was not cut") {
  for (const char* const row : {"adamw", "soap"}) {
    recipe::Optimizer config = rounded_config(row);
    if (config.options.contains("frequency")) config.options["frequency"] = std::int64_t{2};
    for (const Rounding rounding : {Rounding::kStochastic, Rounding::kKahan}) {
      const NamedParameter whole = rounded_parameter("w", {16, 32}),
                           cut = rounded_parameter("w", {16, 32});
      const auto first = make_bf16_optimizer(config, {whole}, rounding, 3);
      const auto second = make_bf16_optimizer(config, {cut}, rounding, 3);
      const at::Tensor slope = at::arange(512, at::kFloat).view({16, 32}).sin();
      for (int i = 0; i < 8; ++i) {
        if (i == 3) {
          cut.tensor.detach().copy_(whole.tensor.detach());
          const units::NamedTensors state = local_tensors(second->state());
          for (const auto& [name, tensor] : local_tensors(first->state()))
            state.at(name).copy_(tensor);
          second->resume_at(3);
        }
        const at::Tensor gradient = (slope * (0.25 * i + 0.1)).to(at::kBFloat16);
        whole.tensor.mutable_grad() = gradient.clone();
        first->step(1e-3);
        if (i < 3) continue;
        cut.tensor.mutable_grad() = gradient.clone();
        second->step(1e-3);
      }
      CAPTURE(row);
      CHECK((at::equal(whole.tensor.detach(), cut.tensor.detach())));
    }
  }
}

TEST_CASE("a weight decay that is set reaches the weights") {
  recipe::Optimizer config = rounded_config("sgd");
  config.weight_decay_end = 0.5;
  const NamedParameter weight = rounded_parameter("w", {2, 2});
  const auto optimizer = make_bf16_optimizer(config, {weight}, Rounding::kKahan, 1);
  optimizer->set_weight_decay(0.5);
  give_gradient(weight, 0);
  optimizer->step(0.5);
  CHECK(mean_weight(weight) == 0.75);  // 1 - 0.5 * 0.5
}

TEST_CASE("between steps there is no more memory than the same optimizer of fp32 weights has") {
  const auto bytes_after = [](bool in_bf16, int steps) {
    NamedParameter weight = rounded_parameter("w", {64, 64});
    if (!in_bf16) weight.tensor = at::ones({64, 64}).requires_grad_(true);
    give_gradient(weight, 0.5);
    const auto meter = std::make_shared<units::MemoryMeter>(at::kCPU);
    const units::MemoryWatch watch(meter);
    const auto optimizer =
        in_bf16 ? make_bf16_optimizer(rounded_config("adamw"), {weight}, Rounding::kStochastic, 1)
                : make_optimizer(rounded_config("adamw"), {weight});
    for (int i = 0; i < steps; ++i) optimizer->step(1e-3);
    return meter->live().total();
  };
  for (const int steps : {0, 1, 2}) CHECK(bytes_after(true, steps) == bytes_after(false, steps));
}

TEST_CASE("in the host's memory it takes the same steps, bit for bit") {
  for (const Rounding rounding : {Rounding::kStochastic, Rounding::kKahan}) {
    const std::vector<NamedParameter> plain{rounded_parameter("w", {512})},
        hosted{rounded_parameter("w", {512})};
    const MakeOptimizer make = [rounding](const std::vector<NamedParameter>& parameters) {
      return make_bf16_optimizer(rounded_config("adamw"), parameters, rounding, 3);
    };
    const auto beside = make(plain), on_host = make_host_optimizer(make, hosted);
    for (int i = 0; i < 4; ++i) {
      for (const auto& one : {plain, hosted}) give_gradient(one.front(), 0.25 * i + 0.1);
      const at::Tensor found_inf = at::full({}, i == 2 ? 1.0F : 0.0F);
      beside->step(1e-3, found_inf);
      on_host->step(1e-3, found_inf);
    }
    CHECK((at::equal(plain.front().tensor.detach(), hosted.front().tensor.detach())));
    const auto expected = local_tensors(beside->state()), found = local_tensors(on_host->state());
    REQUIRE(expected.size() == found.size());
    for (const auto& [name, tensor] : expected) CHECK((at::equal(tensor, found.at(name))));
  }
}

TEST_CASE("weights of fp32 among them are updated as without it") {
  const NamedParameter alone{.name = "b", .tensor = at::ones({5}).requires_grad_(true)};
  const NamedParameter mixed{.name = "b", .tensor = at::ones({5}).requires_grad_(true)};
  const NamedParameter other = rounded_parameter("w", {5, 5});
  const auto reference = make_optimizer(rounded_config("adamw"), {alone});
  const auto optimizer =
      make_bf16_optimizer(rounded_config("adamw"), {other, mixed}, Rounding::kStochastic, 1);
  for (const NamedParameter& one : {alone, mixed, other}) give_gradient(one, 0.3);
  reference->step(1e-3);
  optimizer->step(1e-3);
  CHECK((at::equal(alone.tensor.detach(), mixed.tensor.detach())));
  CHECK((mixed.tensor.scalar_type() == at::kFloat));
  CHECK((other.tensor.scalar_type() == at::kBFloat16));
}

TEST_CASE("every optimizer but one that keeps the weights itself moves bf16 weights") {
  for (const recipe::Row& row : recipe::optimizers().rows) {
    if (row.name == "schedule_free_adamw") continue;
    CAPTURE(row.name);
    const NamedParameter weight = rounded_parameter("w", {16, 8}),
                         bias = rounded_parameter("b", {8});
    const auto optimizer =
        make_bf16_optimizer(rounded_config(row.name.c_str()), {weight, bias}, Rounding::kKahan, 1);
    for (int i = 0; i < 2; ++i) {
      weight.tensor.mutable_grad() = at::arange(128, at::kFloat).view({16, 8}).to(at::kBFloat16);
      give_gradient(bias, 0.5);
      optimizer->step(0.05, at::zeros({}));
    }
    for (const NamedParameter& one : {weight, bias}) {
      const at::Tensor values = one.tensor.detach().to(at::kFloat);
      CHECK(values.isfinite().all().item<bool>());
      CHECK(values.ne(1).any().item<bool>());
    }
  }
}

}  // namespace scaletrain::optim
