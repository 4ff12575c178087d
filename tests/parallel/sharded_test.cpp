// Parts of a small model of four units, walked by hand as an engine walks them, against whole
// copies of it: mesh x level x way of backward, a line each.
#include "lib/parallel/sharded.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <map>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/parallel/unit_flats.h"
#include "tests/dist/ranks.h"

namespace scaletrain::parallel {
namespace {

using namespace std::chrono_literals;
using testing::run_ranks;
using Tensors = std::map<std::string, at::Tensor>;

constexpr int kRanks = 4, kMicroSteps = 2, kSteps = 4;
constexpr std::int64_t kWidth = 5;  // no part is whole: each block has gaps
constexpr std::size_t kUnits = 4;

// A unit is tanh(input) weight^T + bias. The first and the last share their weight, the last two
// their bias; that of the second is not trained.
struct UnitNames {
  const char *weight, *bias;
};
constexpr UnitNames kNames[kUnits] = {{"w0", "b0"}, {"w1", "b1"}, {"w2", "b3"}, {"w0", "b3"}};

Tensors make_tensors() {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
  Tensors result;
  for (const char* name : {"w0", "w1", "w2"}) {
    result[name] = at::randn({kWidth, kWidth}, generator).mul_(0.5).requires_grad_(true);
  }
  for (const char* name : {"b0", "b3", "b1"}) {
    result[name] = at::randn({kWidth}, generator).requires_grad_(std::string(name) != "b1");
  }
  return result;
}

// The order that a backward takes.
enum class Way {
  kWhole,      // all units
  kStages,     // those of two stages of this rank, one after the other
  kHalves,     // weights after all inputs, but for the second unit, whose come at once
  kMixed,      // halves and all units in turn
  kNotToFirst  // it ends before the first unit
};

struct ShardedCase {
  const char* name;
  core::MeshSizes sizes;
  ShardLevel level = ShardLevel::kParameters;
  Way way = Way::kWhole;
  bool on_host = false;
  bool narrow = false;  // w1 is gathered as bf16
};

// One rank's model: whole, or as a placement has it.
class Walk {
 public:
  // `exchanges_each`: behind each unit of a backward.
  Walk(Tensors tensors, Way way, Placement* placement, bool exchanges_each = false)
      : tensors_(std::move(tensors)),
        way_(way),
        placement_(placement),
        exchanges_each_(exchanges_each) {}

  const at::Tensor& at(const std::string& name) const { return tensors_.at(name); }

  void micro_step(const at::Tensor& input, bool is_last) {
    in_halves_ = way_ == Way::kHalves || (way_ == Way::kMixed && !in_halves_);
    if (placement_ != nullptr && way_ == Way::kWhole) placement_->begin_micro_step(is_last);
    forward(input);
    backward(is_last);
  }

  std::string wrong;

 private:
  UnitHooks* hooks() const { return placement_ == nullptr ? nullptr : placement_->hooks(); }

  bool has_memory(std::size_t unit) const {
    return tensors_.at(kNames[unit].weight).storage().nbytes() > 0;
  }

  at::Tensor run(std::size_t unit, const at::Tensor& input) const {
    const UnitNames& names = kNames[unit];
    const at::Tensor weight = tensors_.at(names.weight).to(at::kFloat);
    const at::Tensor product = at::tanh(input).matmul(weight.t());
    return product + tensors_.at(names.bias);
  }

  void enter(std::size_t unit, Pass pass) {
    if (hooks() == nullptr) return;
    hooks()->enter(unit, pass);
    // The next one is on its way.
    const std::size_t next = pass == Pass::kBackward ? unit - 1 : unit + 1;
    if (!has_memory(unit) || (next < kUnits && !has_memory(next))) wrong += "a unit lacks; ";
  }

  void leave(std::size_t unit, Pass pass) {
    if (hooks() == nullptr) return;
    const std::int64_t before = placement_->exchanged_bytes();
    hooks()->leave(unit, pass);
    // Behind the second and the third the weight's gradient goes, where none is waited for.
    const bool goes = pass == Pass::kBackward && (exchanges_each_ || synchronizes_) && !in_halves_;
    const bool has_gone = placement_->exchanged_bytes() > before;
    if ((unit == 1 || unit == 2) && has_gone != goes) wrong += "exchanged elsewhere; ";
  }

  void forward(at::Tensor input) {
    inputs_.clear();
    outputs_.clear();
    for (std::size_t unit = 0; unit < kUnits; ++unit) {
      enter(unit, Pass::kForward);
      inputs_.push_back(input.detach().requires_grad_(unit > 0));
      outputs_.push_back(run(unit, inputs_.back()));
      leave(unit, Pass::kForward);
      input = outputs_.back();
    }
  }

  void backward(bool is_last) {
    at::Tensor gradient = at::ones_like(outputs_.back());
    const auto begin = [&](bool ends_step) {
      synchronizes_ = ends_step;
      if (placement_ == nullptr) return;
      if (in_halves_) placement_->begin_inputs();
      if (!in_halves_ && way_ != Way::kWhole) placement_->begin_micro_step(ends_step);
      placement_->prepare_backward(outputs_.back());
    };
    const auto end = [&] {
      if (hooks() != nullptr) hooks()->end_backward();
    };
    begin(is_last && way_ != Way::kStages);
    for (std::size_t unit = kUnits; unit-- > 0;) {
      if (unit == 0 && way_ == Way::kNotToFirst) break;
      if (unit == 1 && way_ == Way::kStages) {
        end();
        begin(is_last);
      }
      enter(unit, Pass::kBackward);
      gradients_[unit] = gradient;
      const at::Tensor& input = inputs_[unit];
      if (in_halves_) call_hook(kNames[unit].weight);  // as autograd does without a gradient
      if (in_halves_ && unit != 1) {
        if (unit > 0) gradient = torch::autograd::grad({outputs_[unit]}, {input}, {gradient})[0];
      } else {
        torch::autograd::backward({outputs_[unit]}, {gradient});
        gradient = input.grad();
      }
      leave(unit, Pass::kBackward);
    }
    end();
    if (in_halves_) weights(is_last);
  }

  // The first and the last unit's gradients of the weight that they share come with others between.
  void weights(bool is_last) {
    if (placement_ != nullptr) placement_->begin_weights(is_last);
    for (const std::size_t unit : {3, 0, 2}) {
      const at::NoGradGuard no_grad;
      const at::Tensor& gradient = gradients_[unit];
      add(kNames[unit].weight, gradient.t().matmul(at::tanh(inputs_[unit])));
      add(kNames[unit].bias, gradient.sum(0));
    }
    if (placement_ != nullptr) placement_->end_weights();
  }

  void add(const char* name, const at::Tensor& gradient) {
    const at::Tensor& tensor = tensors_.at(name);
    at::Tensor& sum = tensor.mutable_grad();
    sum = sum.defined() ? sum + gradient : gradient;
    call_hook(name);
  }

  void call_hook(const char* name) const {
    const at::Tensor& tensor = tensors_.at(name);
    const auto& hook = torch::autograd::impl::post_acc_grad_hooks(tensor);
    if (hook) (*hook)(tensor);
  }

  Tensors tensors_;
  Way way_;
  Placement* placement_;
  bool exchanges_each_, synchronizes_ = false;
  std::vector<at::Tensor> inputs_, outputs_;
  std::map<std::size_t, at::Tensor> gradients_;
  bool in_halves_ = false;
};

at::Tensor input_of(int step, int micro_step, int reader) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(100 * step + 10 * micro_step + reader);
  return at::randn({3, kWidth}, generator);
}

std::vector<units::NamedParameter> named(const Tensors& tensors, bool trained) {
  std::vector<units::NamedParameter> result;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.requires_grad() == trained) result.push_back({.name = name, .tensor = tensor});
  }
  return result;
}

ShardingOptions sharding_of(const ShardedCase& one, const Tensors& tensors) {
  ShardingOptions sharding{.level = one.level};
  for (const UnitNames& names : kNames) {
    sharding.units.push_back({names.weight, names.bias});
  }
  sharding.frozen = named(tensors, /*trained=*/false);
  sharding.parts_on_host = one.on_host;
  if (one.narrow) sharding.gathered_as_bf16 = {"w1"};
  return sharding;
}

// Bytes of gradients that a step exchanges where nothing is gathered in it. What units share goes
// twice where others' gradients come in between.
std::int64_t step_bytes(const ShardedCase& one, const dist::Mesh& mesh, const Tensors& tensors) {
  const int shards = mesh.size(core::Axis::kShard);
  const auto plans = plan_flats(named(tensors, true), sharding_of(one, tensors).units, shards);
  std::int64_t all = 0, shared = 0;  // bytes of this rank's parts
  for (const FlatPlan& plan : plans) {
    all += 4 * plan.part;
    const bool is_of_both = plan.units.front() < 2 && plan.units.back() >= 2;  // stages
    const bool is_shared = one.way == Way::kStages ? is_of_both : plan.units.size() > 1;
    if (is_shared) shared += 4 * plan.part;
  }
  const int times = one.level == ShardLevel::kOptimizer ? 1 : kMicroSteps;
  const bool goes_twice = one.way == Way::kHalves || (one.way == Way::kStages && times > 1);
  const int again = goes_twice ? times : 0;
  const int copies = mesh.copies().world_size() > 1 ? 1 : 0;
  return all * (shards * times + copies) + shared * shards * again;
}

bool is_near(const at::Tensor& own, const at::Tensor& all, double most) {
  return own.sizes() == all.sizes() && (own - all).abs().max().item<double>() <= most;
}

// "" where this rank's parts have the gradients and values of a whole copy at each step.
std::string against_whole(const ShardedCase& one, dist::Group& ranks) {
  const dist::Mesh mesh(ranks, core::MeshPlan(kRanks, one.sizes));
  Tensors tensors = make_tensors();
  Sharded sharded(named(tensors, true), mesh, sharding_of(one, tensors));
  const Tensors whole_tensors = make_tensors();
  Walk own(tensors, one.way, &sharded, one.level != ShardLevel::kOptimizer);
  Walk whole(whole_tensors, one.way, nullptr);
  const bool cuts = one.level == ShardLevel::kParameters;
  std::string wrong;
  const auto check = [&](bool holds, const std::string& what) {
    if (!holds) wrong += what + "; ";
  };
  check(sharded.exchanges() == cuts, "exchanges");
  check(sharded.sharded_parameters().size() == (cuts ? 6U : 5U), "parts");
  for (const units::NamedParameter& part : sharded.sharded_parameters()) {
    check((part.on_host != nullptr) == one.on_host, part.name + " lies elsewhere");
  }
  for (const Tensors* all : std::initializer_list<const Tensors*>{&tensors, &whole_tensors}) {
    all->at("w2").detach().mul_(1.5);  // as weights are loaded before the start
  }
  sharded.start({});
  check(sharded.exchanged_bytes() == 0, "bytes at the start");
  check((tensors.at("w1").scalar_type() == at::kBFloat16) == one.narrow, "the type of w1");
  const auto all_away = [&] {
    for (const auto& [name, tensor] : tensors) {
      check((tensor.storage().nbytes() == 0) == cuts, name + " is there");
    }
  };
  all_away();
  for (int step = 0; step < kSteps; ++step) {
    const std::int64_t before = sharded.exchanged_bytes();
    sharded.begin_step(step);
    sharded.zero_grad();
    for (int micro = 0; micro < kMicroSteps; ++micro) {
      own.micro_step(input_of(step, micro, mesh.reader()), micro + 1 == kMicroSteps);
      all_away();
      for (int reader = 0; reader < mesh.plan().readers(); ++reader) {
        whole.micro_step(input_of(step, micro, reader), micro + 1 == kMicroSteps);
      }
    }
    const std::int64_t bytes = sharded.exchanged_bytes() - before;
    if (!cuts && one.way != Way::kNotToFirst && one.way != Way::kMixed) {
      const std::int64_t expected = step_bytes(one, mesh, tensors);
      check(bytes == expected, fmt::format("{} bytes for {}", bytes, expected));
    }
    check(bytes > 0, "no bytes");
    const at::NoGradGuard no_grad;
    for (const units::NamedParameter& part : sharded.owned()) {
      const at::Tensor& parameter = whole.at(part.name);
      const at::Tensor sum =
          parameter.grad().defined() ? parameter.grad() : at::zeros_like(parameter);
      const at::Tensor mean = (sum / mesh.plan().readers()).view({-1});
      const std::int64_t count = part.tensor.numel();
      check(is_near(part.tensor.grad().view({-1}), mean.narrow(0, part.begin, count),
                    one.narrow ? 0.05 : 1e-5),
            fmt::format("step {}: the gradient of {}", step, part.name));
      part.tensor.detach().sub_(part.tensor.grad(), 0.1);
    }
    for (const auto& [name, tensor] : whole_tensors) {
      if (!tensor.requires_grad()) continue;
      if (tensor.grad().defined()) tensor.detach().sub_(tensor.grad(), 0.1 / mesh.plan().readers());
      tensor.mutable_grad().reset();
    }
    sharded.spread_ahead();
    if (cuts || step % 2 == 0) continue;  // on its way while the next step's forward runs
    sharded.settle();
    for (const auto& [name, tensor] : tensors) {
      check(is_near(tensor, whole.at(name), 1e-5), fmt::format("step {}: {}", step, name));
    }
  }
  check(sharded.most_units() == (cuts ? 2U : 0U), fmt::format("{} units", sharded.most_units()));
  wrong += own.wrong;
  ranks.barrier("the next case");
  return wrong;
}

constexpr core::MeshSizes kShards{.replica = {}, .shard = 4};
constexpr core::MeshSizes kReplicas{.replica = {}, .shard = 2};
constexpr core::MeshSizes kStages{.pipe = 2, .replica = {}, .shard = 2};
constexpr core::MeshSizes kCopiedStages{.pipe = 2, .replica = {}};

const std::vector<ShardedCase>& cases() {
  using enum ShardLevel;
  static const std::vector<ShardedCase> rows{
      {"optimizer", kShards, kOptimizer},
      {"gradients", kShards, kGradients},
      {"parameters", kShards, kParameters},
      {"replicas, optimizer", kReplicas, kOptimizer},
      {"replicas, gradients", kReplicas, kGradients},
      {"replicas, parameters", kReplicas, kParameters},
      {"on the host", kReplicas, kParameters, Way::kWhole, true},
      {"narrow", kShards, kParameters, Way::kWhole, false, true},
      {"not to the first, optimizer", kShards, kOptimizer, Way::kNotToFirst},
      {"not to the first, gradients", kReplicas, kGradients, Way::kNotToFirst},
      {"not to the first, parameters", kReplicas, kParameters, Way::kNotToFirst},
      {"stages, optimizer", kStages, kOptimizer, Way::kStages},
      {"stages, gradients", kStages, kGradients, Way::kStages},
      {"stages, parameters", kStages, kParameters, Way::kStages},
      {"stages of copies, optimizer", kCopiedStages, kOptimizer, Way::kStages},
      {"stages of copies, gradients", kCopiedStages, kGradients, Way::kStages},
      {"stages of copies, parameters", kCopiedStages, kParameters, Way::kStages},
      {"halves, optimizer", kStages, kOptimizer, Way::kHalves},
      {"halves, gradients", kStages, kGradients, Way::kHalves},
      {"halves, parameters", kStages, kParameters, Way::kHalves},
      {"halves, narrow", kStages, kParameters, Way::kHalves, false, true},
      {"halves, replicas", kReplicas, kParameters, Way::kHalves},
      {"halves, replicas, gradients", kReplicas, kGradients, Way::kHalves},
      {"halves and whole, gradients", kStages, kGradients, Way::kMixed},
      {"halves and whole, parameters", kReplicas, kParameters, Way::kMixed},
  };
  return rows;
}

TEST_CASE("parts of a model have a whole one's gradients and values, step by step") {
  for (const auto& result :
       run_ranks({.world_size = kRanks}, [](const core::WorkerEnv& env) -> std::string {
         at::set_num_threads(1);
         dist::Group world(env, at::kCPU, 30s);
         std::string text;
         for (const ShardedCase& one : cases()) {
           dist::Group ranks(world, {0, 1, 2, 3}, one.name);
           const std::string wrong = against_whole(one, ranks);
           if (!wrong.empty()) text += fmt::format("{}: {}\n", one.name, wrong);
         }
         world.end("the end");
         return text;
       })) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

TEST_CASE("a gradient that comes when backward is through with its unit is a mistake") {
  dist::Group world(core::WorkerEnv(), at::kCPU, 1s);
  const dist::Mesh mesh(world, core::MeshPlan(1));
  Tensors tensors = make_tensors();
  const ShardedCase one{"", {}, ShardLevel::kGradients};
  Sharded sharded(named(tensors, true), mesh, sharding_of(one, tensors));
  sharded.start({});
  sharded.zero_grad();
  Walk walk(tensors, one.way, &sharded);
  walk.micro_step(input_of(0, 0, 0), /*is_last=*/true);
  const at::Tensor& weight = tensors.at("w2");
  weight.mutable_grad() = at::zeros_like(weight);
  const auto& hook = torch::autograd::impl::post_acc_grad_hooks(weight);
  REQUIRE(hook != nullptr);
  CHECK_THROWS_AS((*hook)(weight), core::InternalError);
}

}  // namespace
}  // namespace scaletrain::parallel
