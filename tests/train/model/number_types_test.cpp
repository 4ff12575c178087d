#include "lib/train/model/number_types.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/core/error.h"
#include "lib/core/text/hash.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/load.h"
#include "lib/train/build/build.h"
#include "lib/train/build/evaluation_run.h"
#include "lib/train/loop/evaluate.h"
#include "lib/train/loop/trainer.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

// Every row of precisions.def, with each of its choices, is proven here by being there.
namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;

struct PrecisionCase {
  std::string name, keys;  // the recipe's
};

std::vector<PrecisionCase> all_precisions() {
  std::vector<PrecisionCase> cases;
  for (const recipe::Row& row : recipe::precisions().rows) {
    nlohmann::json keys{{"name", row.name}};
    std::vector<nlohmann::json> variants{keys};
    for (const recipe::Option& option : row.options) {
      if (option.key == "simulate") {
        for (nlohmann::json& one : variants) one[option.key] = true;
      }
      if (option.allowed.empty()) continue;
      std::vector<nlohmann::json> more;
      for (const nlohmann::json& one : variants) {
        for (const recipe::NamedValue& value : option.allowed) {
          more.push_back(one);
          more.back()[option.key] = value.name;
        }
      }
      variants = more;
    }
    for (const nlohmann::json& one : variants) cases.push_back({row.name, one.dump()});
  }
  return cases;
}

// A model whose hidden layers any precision takes.
recipe::Recipe recipe_in(const testing::TinyRun& tiny, const PrecisionCase& precision,
                         const std::string& output) {
  return tiny.recipe({R"(model={"name": "mlp", "num_classes": 3, "hidden": 16, "layers": 3,
                                "dropout": 0.1})",
                      R"(optimizer={"name": "adamw", "lr": 0.01})", "steps=6",
                      "checkpoint.every.steps=2", "checkpoint.keep_last=9", "log.every.steps=1",
                      "ema.decay=0.8", "data.test.shards=" + tiny.path("val.tar"),
                      "batch={\"global\": 8, \"per_device\": 4}", "precision=" + precision.keys,
                      "output=" + tiny.path(output)});
}

std::string train_in(const recipe::Recipe& recipe, core::WorkerEnv env,
                     const std::optional<fs::path>& resume = {}) {
  env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (env.rank == 0) {
    fs::create_directories(recipe.output);
    std::ofstream(fs::path(recipe.output) / "recipe.json") << recipe::to_json(recipe);
  }
  Trainer trainer(recipe, env, resume, {});
  const auto code = trainer.run();
  return fmt::format("code {} after step {}", static_cast<int>(code), trainer.step());
}

fs::path saved_by(const recipe::Recipe& recipe, int step) {
  return format::checkpoint_path(fs::path(recipe.output) / "checkpoints", step);
}

std::string bytes_of_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

struct FormLine {
  double loss;
  std::string digest;
};

std::vector<FormLine> lines_of_run(const recipe::Recipe& recipe) {
  std::vector<FormLine> result;
  std::ifstream stream(recipe.output + "/metrics.jsonl");
  for (std::string line; std::getline(stream, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("event") != "train") continue;
    result.push_back({json.at("loss").get<double>(), json.at("order_digest").get<std::string>()});
  }
  return result;
}

}  // namespace

TEST_CASE(
    "in every precision a run that goes on ends with the bits of one that was not cut, and two "
    "ranks have its order and its losses") {
  const std::map<std::string, double> exact{{"fp32", 1e-5}, {"tf32", 1e-5}, {"fp64", 1e-12}};
  for (const PrecisionCase& precision : all_precisions()) {
    CAPTURE(precision.keys);
    const testing::TinyRun tiny;
    const recipe::Recipe whole = recipe_in(tiny, precision, "whole");
    const recipe::Recipe second = recipe_in(tiny, precision, "second");
    CHECK(testing::said_apart([&] { return train_in(whole, {}); }) == "code 0 after step 6");
    CHECK(testing::said_apart([&] { return train_in(second, {}, saved_by(whole, 2)); }) ==
          "code 0 after step 6");
    const fs::path one = saved_by(whole, 6), other = saved_by(second, 6);
    for (const char* const file :
         {"model.safetensors", "optimizer.safetensors", "ema.safetensors"}) {
      CAPTURE(file);
      CHECK(!bytes_of_file(one / file).empty());
      CHECK(bytes_of_file(one / file) == bytes_of_file(other / file));
    }
    CHECK(bytes_of_file(one / "model.safetensors") !=
          bytes_of_file(saved_by(whole, 4) / "model.safetensors"));
    CHECK(format::read_state(one).scaler == format::read_state(other).scaler);

    const recipe::Recipe shared = recipe_in(tiny, precision, "two ranks");
    for (const auto& result :
         testing::run_ranks({.world_size = 2},
                            [&](const core::WorkerEnv& env) { return train_in(shared, env); })) {
      CHECK(result.text == "code 0 after step 6");
    }
    const std::vector<FormLine> alone = lines_of_run(whole), both = lines_of_run(shared);
    REQUIRE(alone.size() == 6);
    REQUIRE(both.size() == 6);
    const auto found = exact.find(precision.name);
    const double most = found == exact.end() ? 0.02 : found->second;
    for (std::size_t i = 0; i < alone.size(); ++i) {
      CHECK(alone[i].digest == both[i].digest);
      CHECK(alone[i].loss == doctest::Approx(both[i].loss).epsilon(most));
    }
  }
}

// Nothing is exchanged after the gradients: what each rank draws must be the same.
TEST_CASE("in every precision all ranks have the same weights after some steps") {
  for (const PrecisionCase& precision : all_precisions()) {
    CAPTURE(precision.keys);
    const testing::TinyRun tiny;
    const recipe::Recipe recipe = recipe_in(tiny, precision, "run");
    std::vector<std::string> digests;
    for (const auto& result :
         testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
           const auto run = build_run(recipe, env, std::nullopt, {});
           StepRunner steps(step_parts(*run), false);
           for (int step = 0; step < 3; ++step) steps.run(step, 0.01, 0);
           std::string values;
           for (const auto& [name, tensor] : run->learner.tensors()) {
             const at::Tensor wide = tensor.to(at::kFloat).contiguous();
             values.append(static_cast<const char*>(wide.const_data_ptr()), wide.nbytes());
           }
           while (steps.drain()) {
           }
           return fmt::format("{} {:016x}", values.size(), core::xxh3_64(values));
         })) {
      digests.push_back(result.text);
    }
    CHECK(digests[0].size() > 17);
    CHECK(digests[0] == digests[1]);
  }
}

TEST_CASE("every precision trains a small model to about the loss of fp32") {
  const testing::TinyRun tiny;
  std::map<std::string, double> losses;
  for (const PrecisionCase& precision : all_precisions()) {
    const recipe::Recipe recipe =
        tiny.recipe({R"(model={"name": "mlp", "num_classes": 3, "hidden": 64, "layers": 3})",
                     R"(optimizer={"name": "adamw", "lr": 0.003})", "steps=200",
                     "batch.per_device=24", "log.every.steps=1", "precision=" + precision.keys,
                     fmt::format("output={}-{}", tiny.path("run"), losses.size())});
    CHECK(testing::said_apart([&] { return train_in(recipe, {}); }) == "code 0 after step 200");
    double sum = 0;
    const std::vector<FormLine> lines = lines_of_run(recipe);
    for (std::size_t i = 180; i < 200; ++i) sum += lines.at(i).loss;
    losses[precision.keys] = sum / 20;
  }
  const double wanted = losses.at(R"({"name":"fp32"})");
  CHECK(wanted < 0.9);  // from ln 3 = 1.0986
  std::set<double> different;
  for (const auto& item : losses) {
    CAPTURE(item.first);
    CHECK(std::abs(item.second - wanted) < 0.1);
    different.insert(item.second);
  }
  // A CPU's tf32 is fp32, and so is bf16 without AVX-512.
  CHECK(different.size() == losses.size() - (precision::has_avx512() ? 1 : 2));
}

TEST_CASE("a loss scale makes the way through state.json, and what is none is refused") {
  recipe::Component config;
  choose(config, *recipe::precisions().find("fp16"));
  config.options["backoff_factor"] = 0.3;  // no power of two
  const auto saved = precision::make_precision(config, {});
  const auto loaded = precision::make_precision(config, {});
  saved->update(at::ones({}));
  saved->update(at::zeros({}));
  restore_scaler(nlohmann::json::parse(scaler_state(*saved).dump()), *loaded);
  CHECK(loaded->loss_scale().item<float>() == saved->loss_scale().item<float>());
  CHECK(scaler_state(*loaded).at("growth_tracker") == 1);
  restore_scaler(nlohmann::json::object(), *loaded);  // of a run in another precision
  CHECK(scaler_state(*loaded) == scaler_state(*saved));

  choose(config, *recipe::precisions().find("fp32"));
  const auto plain = precision::make_precision(config, {});
  CHECK(scaler_state(*plain) == nlohmann::json::object());
  CHECK_NOTHROW(restore_scaler(scaler_state(*saved), *plain));
  for (const char* const damaged :
       {R"({"scale": 0, "growth_tracker": 1})", R"({"scale": 1e39, "growth_tracker": 1})",
        R"({"scale": "2", "growth_tracker": 1})", R"({"scale": 2, "growth_tracker": -1})",
        R"({"scale": 2, "growth_tracker": 1.5})", R"({"scale": 2})"}) {
    CAPTURE(damaged);
    CHECK_THROWS_AS(restore_scaler(nlohmann::json::parse(damaged), *loaded), core::CheckpointError);
  }
}

// The mean of bf16 weights is saved in fp32, the weights in bf16.
TEST_CASE("weights of one precision are evaluated in another") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe =
      recipe_in(tiny, {.name = "bf16_pure", .keys = R"("bf16_pure")"}, "run");
  CHECK(testing::said_apart([&] { return train_in(recipe, {}); }) == "code 0 after step 6");
  for (const char* const weights : {"model", "ema"}) {
    std::vector<double> losses;
    for (const char* const name : {"fp32", "bf16_pure"}) {
      const recipe::Recipe changed =
          recipe_in(tiny, {.name = name, .keys = fmt::format("\"{}\"", name)}, "run");
      losses.push_back(std::stod(testing::said_apart([&] {
        const auto run =
            build_evaluation(changed, {}, {saved_by(recipe, 6), weights}, task::Split::kVal);
        const EvalResult result = evaluate(*run, task::Split::kVal);
        for (const auto& [measure, value] : result.measures) {
          if (measure->name == "loss") return fmt::format("{}", value);
        }
        return std::string("nan");
      })));
    }
    CAPTURE(weights);
    CHECK(losses[0] == doctest::Approx(losses[1]).epsilon(0.02));
    CHECK(losses[0] != losses[1]);
  }
}

// fc1 and the head are the first and the last; a hidden size of 12 is no multiple of 16.
TEST_CASE("fp8 is for hidden layers that it fits and the recipe does not keep") {
  const testing::TinyRun tiny;
  const auto error_with = [&](const std::string& keep, int hidden) {
    return testing::said_apart([&] {
      build_run(
          tiny.recipe({fmt::format(R"(model={{"name": "mlp", "num_classes": 3, "layers": 3,
                                              "hidden": {}}})",
                                   hidden),
                       fmt::format(R"(precision={{"name": "fp8", "simulate": true{}}})", keep)}),
          {}, std::nullopt, {});
      return std::string("built");
    });
  };
  CHECK(error_with("", 16) == "built");
  CHECK(error_with(R"(, "keep": "fc2")", 16) == "built");
  CHECK(error_with(R"(, "keep": ["fc2", "fc4"])", 16) ==
        "/precision/keep: no linear layer is named \"fc4\"\n  the model has: fc1, fc2, fc3, head");
  const char* const kNone =
      "/precision: fp8 finds no linear layer between the first and the last one whose sizes are "
      "multiples of 16\n  use bf16";
  CHECK(error_with(R"(, "keep": ["fc2", "fc3"])", 16) == kNone);
  CHECK(error_with("", 12) == kNone);
}

// A module with running statistics keeps its weights; one that only counts does not.
TEST_CASE("a buffer of floats keeps a module's weights as they are, but for fp64") {
  class Buffered : public nn::Model {
   public:
    explicit Buffered(const at::Tensor& buffer) {
      register_parameter("weight", at::zeros({2}));
      register_buffer("buffer", buffer);
    }
    std::vector<units::Unit> units() override { return {}; }
  };
  struct Types {
    at::ScalarType weight, buffer;
    bool operator==(const Types&) const = default;
  };
  const auto types_with = [&](const char* name, const at::Tensor& buffer) {
    recipe::Component config;
    choose(config, *recipe::precisions().find(name));
    const auto precision = precision::make_precision(config, {.device = at::kCPU, .avx512 = true});
    const auto model = std::make_shared<Buffered>(buffer);
    convert_weights(*model, *precision);
    return Types{model->parameters()[0].scalar_type(), model->buffers()[0].scalar_type()};
  };
  const at::Tensor statistics = at::zeros({2}), count = at::zeros({}, at::kLong);
  CHECK((types_with("bf16_pure", statistics) == Types{at::kFloat, at::kFloat}));
  CHECK((types_with("bf16_pure", count) == Types{at::kBFloat16, at::kLong}));
  CHECK((types_with("fp64", statistics) == Types{at::kDouble, at::kDouble}));
  CHECK((types_with("fp64", count) == Types{at::kDouble, at::kLong}));
}

TEST_CASE("fp8 changes what hidden layers give, and no others") {
  const testing::TinyRun tiny;
  const auto output_with = [&](const std::string& precision_keys) {
    return testing::said_apart([&] {
      const recipe::Recipe recipe =
          tiny.recipe({R"(model={"name": "mlp", "num_classes": 3, "hidden": 16, "layers": 3})",
                       "precision=" + precision_keys});
      const auto model = nn::make_model(recipe.model, recipe.data.image_size, 1);
      set_linear_products(*model, *precision::make_precision(recipe.precision, {}),
                          recipe.precision);
      at::manual_seed(1);
      const at::Tensor input = at::randn({4, 3, 8, 8});
      return fmt::format(
          "{:a}",
          units::run(model->units(), {input}, {}).front().to(at::kDouble).sum().item<double>());
    });
  };
  const std::string plain = output_with(R"("fp32")");
  CHECK(!plain.empty());
  CHECK(output_with(R"({"name": "fp8", "simulate": true})") != plain);
}

TEST_CASE("the recipe says where an optimizer is, and how bf16 weights are rounded") {
  const testing::TinyRun tiny;
  // Whether a step leaves the gradient to the optimizer in the host's memory, and the state's
  // names.
  const auto made = [&](const std::string& change, at::ScalarType type) {
    const at::Tensor weight = at::ones({2, 2}, type).requires_grad_(true);
    weight.mutable_grad() = at::arange(4, type).view({2, 2});
    const auto optimizer = make_optimizer(
        tiny.recipe({"optimizer.centralize_gradients=true", change}), {{"w", weight}});
    REQUIRE(optimizer);
    optimizer->step(0.1);
    std::string text = at::equal(weight.grad(), at::arange(4, type).view({2, 2})) ? "kept" : "used";
    for (const auto& item : optimizer->state()) text += " " + item.first;
    return text;
  };
  CHECK(made("seed=1", at::kFloat) == "used momentum_buffer/w");
  CHECK(made("offload.activations=true", at::kFloat) == "used momentum_buffer/w");
  CHECK(made("offload.optimizer=true", at::kFloat) == "kept momentum_buffer/w");
  CHECK(made(R"(precision={"name": "bf16_pure", "update": "kahan"})", at::kBFloat16) ==
        "kept kahan/w momentum_buffer/w");
  CHECK(made(R"(precision={"name": "bf16_pure", "update": "stochastic"})", at::kBFloat16) ==
        "kept momentum_buffer/w");
}

TEST_CASE("bf16_pure makes weights bf16 but for BatchNorm's, and saves them so") {
  const testing::TinyRun tiny;
  const std::string said = testing::said_apart([&] {
    const auto run = build_run(
        tiny.recipe({R"(model={"name": "resnet18", "num_classes": 3})", "precision=bf16_pure"}), {},
        std::nullopt, {});
    std::string types;
    for (const char* const name :
         {"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean", "fc.weight", "fc.bias"}) {
      const at::Tensor tensor = run->learner.tensors().at(name);
      types += fmt::format("{} {}; ", name, c10::toString(tensor.scalar_type()));
    }
    StepRunner steps(step_parts(*run), false);
    steps.run(0, 0.1, 0);
    return types + (steps.drain()->finite ? "finite" : "not finite");
  });
  CHECK(said ==
        "conv1.weight BFloat16; bn1.weight Float; bn1.bias Float; bn1.running_mean Float; "
        "fc.weight BFloat16; fc.bias BFloat16; finite");
}

}  // namespace scaletrain::train
