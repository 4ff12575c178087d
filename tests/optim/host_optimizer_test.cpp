#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lib/optim/optimizer.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/describe.h"
#include "lib/units/host_update.h"
#include "tests/temporary_folder.h"

namespace {

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

recipe::Optimizer optimizer_named(const std::string& name) {
  recipe::Optimizer optimizer;
  recipe::choose(optimizer, *recipe::optimizers().find(name));
  optimizer.lr = 0.1;
  optimizer.weight_decay = 0.01;
  return optimizer;
}

// Three parameters, one of them channels last, which come out the same each time.
struct ThreeParameters {
  std::vector<optim::NamedParameter> all;

  ThreeParameters() {
    at::manual_seed(5);
    all.push_back({.name = "a", .tensor = at::randn({8, 4}).requires_grad_()});
    all.push_back({.name = "b", .tensor = at::randn({5}).requires_grad_()});
    all.push_back(
        {.name = "c",
         .tensor =
             at::randn({2, 3, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_()});
  }
  void draw_gradients(std::uint64_t seed) const {
    at::manual_seed(seed);
    for (const optim::NamedParameter& one : all) {
      at::Tensor tensor = one.tensor;
      tensor.mutable_grad() = at::randn_like(tensor.detach());
    }
  }
};

}  // namespace

TEST_CASE("an optimizer on the host takes the steps it takes beside the model, bit for bit") {
  for (const char* const name : {"adamw", "sgd", "lion", "muon", "schedule_free_adamw"}) {
    CAPTURE(name);
    const ThreeParameters plain, hosted;
    const auto beside = optim::make_optimizer(optimizer_named(name), plain.all);
    const auto on_host = optim::make_host_optimizer(optimizer_named(name), hosted.all);
    for (std::uint64_t step = 0; step < 3; ++step) {
      plain.draw_gradients(step);
      hosted.draw_gradients(step);
      const at::Tensor found_inf = at::full({}, step == 1 ? 1.0F : 0.0F);
      beside->step(0.1, found_inf);
      on_host->step(0.1, found_inf);
    }
    for (std::size_t i = 0; i < plain.all.size(); ++i) {
      CHECK(at::equal(plain.all[i].tensor, hosted.all[i].tensor));
    }
    const auto expected = local_tensors(beside->state()), found = local_tensors(on_host->state());
    REQUIRE(expected.size() == found.size());
    for (const auto& [key, tensor] : expected) CHECK(at::equal(tensor, found.at(key)));
    const auto weights = beside->evaluation_weights(), host_weights = on_host->evaluation_weights();
    REQUIRE(weights.size() == host_weights.size());
    for (const auto& [key, tensor] : weights) CHECK(at::equal(tensor, host_weights.at(key)));
  }
}

namespace {

// Large enough that state is in a file; the parameters' own tensors lie in the host's memory where
// `on_host`.
struct LargeParameters {
  std::vector<optim::NamedParameter> all;

  explicit LargeParameters(bool on_host) {
    at::manual_seed(6);
    const std::vector<std::vector<std::int64_t>> shapes{{64, 40}, {2048},        {48, 64},
                                                        {3},      {16, 8, 3, 3}, {70, 70}};
    for (const std::vector<std::int64_t>& shape : shapes) {
      all.push_back({.name = std::to_string(all.size()),
                     .tensor = at::randn(shape).requires_grad_(),
                     .on_host = on_host ? std::make_shared<units::HostUpdate>() : nullptr});
    }
  }
  void draw_gradients(std::uint64_t seed) const {
    at::manual_seed(seed);
    for (const optim::NamedParameter& one : all) {
      at::Tensor tensor = one.tensor;
      tensor.mutable_grad() = at::randn_like(tensor.detach());
    }
  }
};

}  // namespace

TEST_CASE("in portions, with state in a file and weights on the host: every optimizer's bits") {
  const test::TemporaryFolder folder;
  for (const recipe::Row& row : recipe::optimizers().rows) {
    for (const bool on_host : {false, true}) {
      for (const std::filesystem::path& file : {std::filesystem::path(), folder.path}) {
        CAPTURE(std::string(row.name));
        CAPTURE(on_host);
        CAPTURE(file.string());
        recipe::Optimizer config = optimizer_named(std::string(row.name));
        config.weight_decay_end = 0.2;
        const LargeParameters plain(false), hosted(on_host), resumed(on_host);
        const optim::HostOptions options{.folder = file, .portion = 3000};
        const auto beside = optim::make_optimizer(config, plain.all);
        const auto on = optim::make_host_optimizer(config, hosted.all, options);
        const auto step = [&](optim::Optimizer& one, const LargeParameters& parameters,
                              std::uint64_t number) {
          parameters.draw_gradients(number);
          one.set_weight_decay(0.01 * static_cast<double>(number + 1));
          one.step(0.1, at::full({}, number == 1 ? 1.0F : 0.0F));
        };
        for (std::uint64_t number = 0; number < 3; ++number) {
          step(*beside, plain, number);
          step(*on, hosted, number);
        }
        if (on_host) {  // who reads a parameter waits for that alone
          for (std::size_t i = 0; i < plain.all.size(); ++i) {
            hosted.all[i].on_host->wait();
            CHECK(at::equal(plain.all[i].tensor, hosted.all[i].tensor));
          }
        }
        const auto expected = local_tensors(beside->state()), found = local_tensors(on->state());
        REQUIRE(expected.size() == found.size());
        for (const auto& [key, tensor] : expected) CHECK(at::equal(tensor, found.at(key)));
        const auto weights = beside->evaluation_weights(), host_weights = on->evaluation_weights();
        REQUIRE(weights.size() == host_weights.size());
        for (const auto& [key, tensor] : weights) CHECK(at::equal(tensor, host_weights.at(key)));

        // A state of either goes on in the other.
        const auto after = optim::make_host_optimizer(config, resumed.all, options);
        for (std::size_t i = 0; i < plain.all.size(); ++i) {
          resumed.all[i].tensor.detach().copy_(plain.all[i].tensor.detach());
        }
        for (const auto& [key, tensor] : local_tensors(after->state()))
          tensor.copy_(expected.at(key));
        after->resume_at(3);
        for (std::uint64_t number = 3; number < 5; ++number) {
          step(*beside, plain, number);
          step(*on, hosted, number);
          step(*after, resumed, number);
        }
        on->settle();
        after->settle();
        for (std::size_t i = 0; i < plain.all.size(); ++i) {
          CHECK(at::equal(plain.all[i].tensor, hosted.all[i].tensor));
          CHECK(at::equal(plain.all[i].tensor, resumed.all[i].tensor));
        }
      }
    }
  }
}

TEST_CASE("a portion has as many parameters as fit, and one that is larger alone") {
  const auto portions_of = [](const std::vector<std::int64_t>& sizes) {
    std::vector<optim::NamedParameter> parameters;
    for (const std::int64_t size : sizes) {
      parameters.push_back(
          {.name = std::to_string(parameters.size()), .tensor = at::ones({size}).requires_grad_()});
    }
    std::vector<std::size_t> counts;
    optim::make_host_optimizer(
        [&](std::vector<optim::NamedParameter> twins) {
          counts.push_back(twins.size());
          return optim::make_optimizer(optimizer_named("sgd"), std::move(twins));
        },
        parameters, {.portion = 10});
    return counts;
  };
  using Counts = std::vector<std::size_t>;
  CHECK(portions_of({10, 1}) == Counts{1, 1});
  CHECK(portions_of({9, 1}) == Counts{2});
  CHECK(portions_of({4, 5, 1, 1, 9}) == Counts{3, 2});
  CHECK(portions_of({4, 11, 6, 4}) == Counts{1, 1, 2});
  CHECK(portions_of({}) == Counts{0});
}

TEST_CASE("a rank without parameters takes steps") {
  const auto nothing = optim::make_host_optimizer(optimizer_named("adamw"), {});
  nothing->step(0.1);
  nothing->step(0.1);
  nothing->settle();
  CHECK(nothing->evaluation_weights().empty());
}

TEST_CASE("an update beside the training that fails is said to all who wait") {
  const LargeParameters hosted(true);
  const auto optimizer =
      optim::make_host_optimizer(optimizer_named("adamw"), hosted.all, {.portion = 3000});
  hosted.draw_gradients(1);
  at::Tensor second = hosted.all[1].tensor, last = hosted.all.back().tensor;
  second.mutable_grad().reset();
  optimizer->step(0.1);
  const std::string error =
      "optimizer: parameter 1 has no gradient\n"
      "  every parameter of a model must take part in its forward";
  CHECK_NOTHROW(hosted.all[0].on_host->wait());  // of the portion before
  CHECK_THROWS_WITH(hosted.all[1].on_host->wait(), error.c_str());
  CHECK_THROWS_WITH(hosted.all.back().on_host->wait(), error.c_str());
  CHECK_THROWS_WITH(optimizer->settle(), error.c_str());
  CHECK_THROWS_WITH(optimizer->state(), error.c_str());
}

TEST_CASE("weights that are put in before the first step count, gradients stay as they are") {
  const ThreeParameters parameters;
  recipe::Optimizer config = optimizer_named("sgd");
  config.centralize_gradients = true;  // which changes those that it is given
  const auto optimizer = optim::make_host_optimizer(config, parameters.all);
  const at::Tensor &weight = parameters.all[0].tensor, &bias = parameters.all[1].tensor;
  bias.detach().fill_(3);
  parameters.draw_gradients(1);
  const at::Tensor gradient = weight.grad().clone();
  optimizer->step(0);
  CHECK(at::equal(bias, at::full({5}, 3.0)));
  CHECK(at::equal(weight.grad(), gradient));
}

TEST_CASE("a state that is filled in goes on where it was taken") {
  const ThreeParameters first, second;
  const auto from = optim::make_host_optimizer(optimizer_named("schedule_free_adamw"), first.all);
  first.draw_gradients(1);
  from->step(0.1);
  const auto to = optim::make_host_optimizer(optimizer_named("schedule_free_adamw"), second.all);
  const auto saved = local_tensors(from->state());
  for (const auto& [key, tensor] : local_tensors(to->state())) tensor.copy_(saved.at(key));
  to->resume_at(1);
  first.draw_gradients(2);
  second.draw_gradients(2);
  from->step(0.1);
  to->step(0.1);
  for (std::size_t i = 0; i < first.all.size(); ++i) {
    CHECK(at::equal(first.all[i].tensor, second.all[i].tensor));
  }
}

TEST_CASE("a parameter without a gradient is named, also where it had one before") {
  const ThreeParameters parameters;
  const auto optimizer = optim::make_host_optimizer(optimizer_named("sgd"), parameters.all);
  const auto check = [&] {
    CHECK_THROWS_WITH(optimizer->step(0.1),
                      "optimizer: parameter a has no gradient\n"
                      "  every parameter of a model must take part in its forward");
  };
  check();
  parameters.draw_gradients(1);
  optimizer->step(0.1);
  parameters.all[0].tensor.mutable_grad().reset();
  check();
}

TEST_CASE("before the first step the weights to evaluate are made of those that were put in") {
  const ThreeParameters parameters;
  const auto optimizer =
      optim::make_host_optimizer(optimizer_named("schedule_free_adamw"), parameters.all);
  parameters.all[1].tensor.detach().fill_(3);
  const auto weights = optimizer->evaluation_weights();
  REQUIRE(weights.size() == 3);
  CHECK(at::equal(weights.at("b"), at::full({5}, 3.0)));
}

TEST_CASE("weight decay and the number of tried steps reach the optimizer on the host") {
  recipe::Optimizer config = optimizer_named("soap");
  config.options.at("frequency") = std::int64_t{2};
  config.weight_decay_end = 0.5;
  const ThreeParameters plain, hosted;
  const auto beside = optim::make_optimizer(config, plain.all);
  const auto on_host = optim::make_host_optimizer(config, hosted.all);
  for (optim::Optimizer* const one : {beside.get(), on_host.get()}) {
    one->set_weight_decay(0.3);
    one->resume_at(1);
  }
  for (std::uint64_t step = 0; step < 2; ++step) {  // the first one renews soap's bases
    plain.draw_gradients(step);
    hosted.draw_gradients(step);
    beside->step(0.1);
    on_host->step(0.1);
  }
  for (std::size_t i = 0; i < plain.all.size(); ++i) {
    CHECK(at::equal(plain.all[i].tensor, hosted.all[i].tensor));
  }
}

int copies_made = 0;

TEST_CASE("a step takes the gradients and gives the weights back, and copies nothing else") {
  const ThreeParameters parameters;
  const auto optimizer = optim::make_host_optimizer(optimizer_named("sgd"), parameters.all);
  const auto copies_of_step = [&] {
    parameters.draw_gradients(1);
    copies_made = 0;
    const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
          copies_made += std::string_view(function.name()) == "aten::copy_" ? 1 : 0;
          return nullptr;
        }));
    optimizer->step(0.1);
    at::removeCallback(handle);
    return copies_made;
  };
  CHECK(copies_of_step() == 9);  // the first step takes the weights too
  CHECK(copies_of_step() == 6);
}
