#include "lib/optim/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/recipe/catalog/lists.h"

namespace {

using namespace scaletrain;
using optim::NamedParameter;

recipe::Optimizer sgd(double momentum, bool nesterov = false) {
  recipe::Optimizer config;
  config.name = "sgd";
  config.options = {{"momentum", momentum}, {"nesterov", nesterov}};
  return config;
}

recipe::Optimizer adamw() {
  recipe::Optimizer config;
  config.name = "adamw";
  config.options = {{"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}};
  return config;
}

at::Tensor parameter(at::IntArrayRef shape, double value) {
  return at::full(shape, value).requires_grad_(true);
}

void set_gradient(at::Tensor tensor, double value) {
  tensor.mutable_grad() = at::full(tensor.sizes(), value);
}

double first(const at::Tensor& tensor) { return tensor.detach().flatten()[0].item<double>(); }

// Every row as it is by default, and where it takes another way.
std::vector<recipe::Optimizer> every_optimizer() {
  std::vector<recipe::Optimizer> configs{sgd(0.9, true)};
  for (const recipe::Row& row : recipe::optimizers().rows) {
    recipe::choose(configs.emplace_back(), row);
    for (const auto& [key, value] :
         std::map<std::string, std::int64_t>{{"min_8bit_size", 0}, {"frequency", 2}}) {
      if (!configs.back().options.contains(key)) continue;
      configs.push_back(configs.back());
      configs.back().options[key] = value;
    }
  }
  configs.push_back(adamw());
  configs.back().centralize_gradients = true;
  for (recipe::Optimizer& config : configs) config.lr = 0.01;
  return configs;
}

TEST_CASE("sgd with momentum and weight decay follows PyTorch's formula") {
  recipe::Optimizer config = sgd(0.9);
  config.weight_decay = 0.1;
  const at::Tensor p = parameter({2, 3}, 1.0);
  const auto optimizer = optim::make_optimizer(config, {{"p", p}});
  set_gradient(p, 0.5);
  optimizer->step(0.1);
  CHECK(first(p) == doctest::Approx(0.94));  // v = 0.5 + 0.1 * 1 = 0.6; 1 - 0.1 * 0.6
  optimizer->step(0.1);
  CHECK(first(p) == doctest::Approx(0.8266));  // v = 0.9 * 0.6 + 0.5 + 0.094 = 1.134
}

TEST_CASE("sgd with nesterov looks ahead") {
  const at::Tensor p = parameter({1, 1}, 1.0);
  const auto optimizer = optim::make_optimizer(sgd(0.9, true), {{"p", p}});
  set_gradient(p, 0.5);
  optimizer->step(0.1);
  CHECK(first(p) == doctest::Approx(0.905));  // v = 0.5; 1 - 0.1 * (0.5 + 0.9 * 0.5)
}

TEST_CASE("sgd without momentum has no state") {
  const at::Tensor p = parameter({1}, 1.0);
  const auto optimizer = optim::make_optimizer(sgd(0), {{"p", p}});
  CHECK(optimizer->state().empty());
  set_gradient(p, 0.5);
  optimizer->step(0.1);
  CHECK(first(p) == doctest::Approx(0.95));
}

TEST_CASE("adamw follows PyTorch's formula") {
  recipe::Optimizer config = adamw();
  config.weight_decay = 0.1;
  const at::Tensor p = parameter({2, 2}, 1.0);
  const auto optimizer = optim::make_optimizer(config, {{"p", p}});
  set_gradient(p, 0.5);
  optimizer->step(0.01);
  // 1 * (1 - 0.01 * 0.1) - 0.01 * 0.5 / 0.5, the bias corrections cancel in the first step.
  CHECK(first(p) == doctest::Approx(0.989));
  set_gradient(p, -0.25);
  optimizer->step(0.01);
  // m = 0.9 * 0.05 - 0.1 * 0.25 = 0.02, / (1 - 0.81) = 0.105263;
  // v = 0.999 * 0.00025 + 0.001 * 0.0625 = 0.00031225, / (1 - 0.998001) = 0.156203, root 0.395226;
  // 0.989 * 0.999 - 0.01 * 0.105263 / 0.395226 = 0.985348
  CHECK(first(p) == doctest::Approx(0.985348).epsilon(1e-6));
}

TEST_CASE("weight decay leaves out norms, biases and what the model excludes, unless asked") {
  recipe::Optimizer config = sgd(0);
  config.weight_decay = 0.1;
  for (const bool asked : {false, true}) {
    config.decay_norm_and_bias = asked;
    const at::Tensor weight = parameter({2, 2}, 1.0), bias = parameter({2}, 1.0),
                     token = parameter({1, 1, 2}, 1.0);
    const auto optimizer = optim::make_optimizer(
        config,
        {{"weight", weight}, {"bias", bias}, {.name = "token", .tensor = token, .decays = false}});
    for (const at::Tensor& p : {weight, bias, token}) set_gradient(p, 0);
    optimizer->step(0.5);
    CAPTURE(asked);
    CHECK(first(weight) == doctest::Approx(0.95));  // 1 - 0.5 * 0.1
    CHECK(first(bias) == doctest::Approx(asked ? 0.95 : 1.0));
    CHECK(first(token) == doctest::Approx(asked ? 0.95 : 1.0));
  }
}

TEST_CASE("a parameter's own weight decay takes the place of all rules") {
  recipe::Optimizer config = sgd(0);
  config.weight_decay = 0.1;
  const at::Tensor weight = parameter({2, 2}, 1.0), bias = parameter({2}, 1.0);
  const auto optimizer =
      optim::make_optimizer(config, {{.name = "weight", .tensor = weight, .weight_decay = 0},
                                     {.name = "bias", .tensor = bias, .weight_decay = 0.2}});
  for (const at::Tensor& p : {weight, bias}) set_gradient(p, 0);
  optimizer->step(0.5);
  CHECK(first(weight) == doctest::Approx(1.0));
  CHECK(first(bias) == doctest::Approx(0.9));  // 1 - 0.5 * 0.2
}

TEST_CASE("a parameter's scale multiplies its learning rate, and its weight decay with it") {
  for (recipe::Optimizer config : every_optimizer()) {
    CAPTURE(config.name);
    config.weight_decay = 0.1;
    // Of two scales in each kind of group, one of them twice.
    std::vector<NamedParameter> parameters, alone;
    for (const double scale : {1.0, 0.5, 0.25, 0.5}) {
      for (const std::vector<std::int64_t>& shape :
           {std::vector<std::int64_t>{2, 2}, std::vector<std::int64_t>{2}}) {
        const std::string name = std::to_string(parameters.size());
        parameters.push_back({.name = name, .tensor = parameter(shape, 1), .lr_scale = scale});
        alone.push_back({.name = name, .tensor = parameter(shape, 1)});
      }
    }
    const auto optimizer = optim::make_optimizer(config, parameters);
    for (const NamedParameter& p : parameters) set_gradient(p.tensor, 0.5);
    optimizer->step(0.1);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      set_gradient(alone[i].tensor, 0.5);
      optim::make_optimizer(config, {alone[i]})->step(0.1 * parameters[i].lr_scale);
      CAPTURE(i);
      CHECK((at::equal(parameters[i].tensor, alone[i].tensor)));
    }
    CHECK(first(parameters[4].tensor) > first(parameters[0].tensor));
  }
}

TEST_CASE("a piece in one dimension decays as its logical tensor does") {
  recipe::Optimizer config = sgd(0);
  config.weight_decay = 0.1;
  const at::Tensor piece = parameter({3}, 1.0), bias = parameter({3}, 1.0);
  const auto optimizer = optim::make_optimizer(
      config, {{.name = "weight", .tensor = piece, .shard = units::Shard{.shape = {2, 3}}},
               {.name = "bias", .tensor = bias, .shard = units::Shard{.shape = {6}}}});
  for (const at::Tensor& p : {piece, bias}) set_gradient(p, 0);
  optimizer->step(0.5);
  CHECK(first(piece) == doctest::Approx(0.95));  // 1 - 0.5 * 0.1
  CHECK(first(bias) == doctest::Approx(1.0));
}

struct Training {
  at::Tensor weight, bias;
  std::unique_ptr<optim::Optimizer> optimizer;

  explicit Training(const recipe::Optimizer& config)
      : weight(parameter({3, 2, 4, 4}, 0.5)),
        bias(parameter({3}, 0.1)),
        optimizer(optim::make_optimizer(config, {{"weight", weight}, {"bias", bias}})) {}

  void run(int begin, int end) { run_told(begin, end, std::nullopt); }

  void run_told(int begin, int end, const std::optional<at::Tensor>& found_inf) {
    for (int step = begin; step < end; ++step) {
      auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(step));
      weight.mutable_grad() = at::randn(weight.sizes(), generator);
      bias.mutable_grad() = at::randn(bias.sizes(), generator);
      optimizer->step(0.01, found_inf);
    }
  }
};

void copy_into(const at::Tensor& to, const at::Tensor& from) { to.detach().copy_(from.detach()); }

TEST_CASE("three steps, state carried over, three steps are six steps, bit for bit") {
  for (recipe::Optimizer config : every_optimizer()) {
    CAPTURE(config.name);
    config.weight_decay = 0.05;
    Training whole(config), part(config), resumed(config);
    whole.run(0, 6);
    part.run(0, 3);
    copy_into(resumed.weight, part.weight);
    copy_into(resumed.bias, part.bias);
    const auto saved = local_tensors(part.optimizer->state());
    const auto restored = local_tensors(resumed.optimizer->state());
    REQUIRE(restored.size() == saved.size());
    for (const auto& [name, tensor] : restored) tensor.copy_(saved.at(name));
    resumed.optimizer->resume_at(3);
    resumed.run(3, 6);
    CHECK(at::equal(resumed.weight, whole.weight));
    CHECK(at::equal(resumed.bias, whole.bias));
  }
}

TEST_CASE("state is complete before the first step and named after its parameters") {
  const auto names = [](const recipe::Optimizer& config) {
    std::string text;
    for (const auto& [name, tensor] : local_tensors(Training(config).optimizer->state())) {
      text += name + " ";
      CHECK(tensor.abs().sum().item<double>() == 0);
    }
    return text;
  };
  CHECK(names(sgd(0.9)) == "momentum_buffer/bias momentum_buffer/weight ");
  CHECK(names(adamw()) == "exp_avg/bias exp_avg/weight exp_avg_sq/bias exp_avg_sq/weight step ");
  recipe::Optimizer lion;
  recipe::choose(lion, *recipe::optimizers().find("lion"));
  CHECK((Training(lion).optimizer->state().at("step").tensor.scalar_type() == at::kDouble));
}

TEST_CASE("a gradient in another memory layout updates the right elements") {
  const at::Tensor p =
      at::zeros({2, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_(true);
  const at::Tensor gradient = at::arange(24, at::kFloat).reshape({2, 3, 2, 2});
  p.mutable_grad() = gradient;
  optim::make_optimizer(sgd(0), {{"p", p}})->step(1.0);
  CHECK(at::equal(p.detach(), -gradient));
}

TEST_CASE("a parameter without a gradient is named") {
  const auto optimizer = optim::make_optimizer(sgd(0), {{"layer.weight", parameter({1}, 1.0)}});
  CHECK_THROWS_WITH_AS(optimizer->step(0.1),
                       "optimizer: parameter layer.weight has no gradient\n"
                       "  every parameter of a model must take part in its forward",
                       core::InternalError);
}

TEST_CASE("the learning rate grows with the global batch only where a base batch is given") {
  recipe::Optimizer config = sgd(0);
  config.lr = 0.1;
  CHECK(optim::scaled_lr(config, 1024) == doctest::Approx(0.1));
  config.lr_base_batch = 256;
  CHECK(optim::scaled_lr(config, 1024) == doctest::Approx(0.4));
  config.lr_scaling = "sqrt";
  CHECK(optim::scaled_lr(config, 1024) == doctest::Approx(0.2));
}

TEST_CASE("every row of optimizers.def makes an optimizer that goes downhill") {
  for (const recipe::Row& row : recipe::optimizers().rows) {
    CAPTURE(row.name);
    recipe::Optimizer config;
    recipe::choose(config, row);
    const at::Tensor weight = at::ones({3}).requires_grad_();
    const auto optimizer =
        optim::make_optimizer(config, {{.name = "weight", .tensor = weight, .decays = false}});
    weight.mutable_grad() = at::ones({3});
    optimizer->step(0.1);
    CHECK(weight.lt(1).all().item<bool>());
  }
}

TEST_CASE("an optimizer of no parameters has nothing to do") {
  for (const recipe::Row& row : recipe::optimizers().rows) {
    CAPTURE(row.name);
    recipe::Optimizer config;
    recipe::choose(config, row);
    CHECK_NOTHROW(optim::make_optimizer(config, {})->step(0.1));
  }
}

// Parameters and state, copied.
std::map<std::string, at::Tensor> everything(Training& training) {
  units::NamedTensors result = local_tensors(training.optimizer->state());
  result["weight"] = training.weight.detach();
  result["bias"] = training.bias.detach();
  for (auto& [name, tensor] : result) tensor = tensor.clone();
  return result;
}

bool same(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    if (!at::equal(tensor, b.at(name))) return false;
  }
  return true;
}

TEST_CASE("every optimizer leaves a step out, its count too, where found_inf says so") {
  for (recipe::Optimizer config : every_optimizer()) {
    CAPTURE(config.name);
    config.weight_decay = 0.05;
    Training plain(config), told(config);
    const auto finite_step = [&](int step) {
      plain.run(step, step + 1);
      told.run_told(step, step + 1, at::zeros({}));
      CHECK(same(everything(plain), everything(told)));
    };
    finite_step(0);
    finite_step(1);
    const auto before = everything(told);
    // An even number of them: soap's bases are renewed by the steps that were tried.
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL, -HUGE_VAL, 1.0}) {
      set_gradient(told.weight, 1.0);
      set_gradient(told.bias, bad);
      told.optimizer->step(0.01, at::ones({}));
      CHECK(same(before, everything(told)));
    }
    finite_step(2);  // goes on as if nothing had been
  }
}

int views_made = 0;

TEST_CASE("state has the slices of its parameter, or is unsharded if its elements are others") {
  const std::map<std::string, at::Tensor> parameters{{"kernel", parameter({6, 5, 3, 3}, 1)},
                                                     {"matrix", parameter({24, 17}, 1)},
                                                     {"norm", parameter({24}, 1)}};
  for (const recipe::Optimizer& config : every_optimizer()) {
    CAPTURE(config.name);
    std::vector<NamedParameter> named;
    for (const auto& [name, tensor] : parameters) {
      named.push_back({.name = name, .tensor = tensor, .counts = false});
    }
    bool has_others = false;
    for (const auto& [name, shard] : optim::make_optimizer(config, named)->state()) {
      const std::size_t slash = name.find('/');
      if (slash == std::string::npos) continue;
      CAPTURE(name);
      CHECK_FALSE(shard.owned);
      CHECK(shard.shape == shard.tensor.sizes().vec());
      CHECK(shard.is_full());
      has_others =
          has_others || shard.tensor.sizes() != parameters.at(name.substr(slash + 1)).sizes();
    }
    if (config.name == "adafactor" || config.name == "soap") CHECK(has_others);
  }
}

TEST_CASE("a step makes views of the gradients alone: the others stay as they are") {
  const at::Tensor weight = parameter({4, 4}, 1.0), bias = parameter({4}, 1.0);
  for (const recipe::Optimizer& config : {sgd(0.9), adamw()}) {
    CAPTURE(config.name);
    const auto optimizer = optim::make_optimizer(config, {{"weight", weight}, {"bias", bias}});
    set_gradient(weight, 0.5);
    set_gradient(bias, 0.5);
    views_made = 0;
    const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
          views_made += std::string_view(function.name()) == "aten::as_strided" ? 1 : 0;
          return nullptr;
        }));
    optimizer->step(0.1);
    at::removeCallback(handle);
    CHECK(views_made == 2);
  }
}

}  // namespace
