#include "lib/train/loop/means.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lib/checkpoint/checkpoint.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/train/build/build.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

fs::path saved_at(const recipe::Recipe& recipe, int step) {
  return format::checkpoint_path(fs::path(recipe.output) / "checkpoints", step);
}

// The loss of each split of the last evaluation.
std::map<std::string, double> last_losses(const recipe::Recipe& recipe) {
  std::map<std::string, double> losses;
  std::ifstream stream(recipe.output + "/metrics.jsonl");
  for (std::string line; std::getline(stream, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("event") == "checkpoint" || json.at("event") == "ledger") continue;
    losses[json.value("split", "train")] = json.at("loss").get<double>();
  }
  return losses;
}

// A weight of what a checkpoint has, read in a process that may start threads.
std::vector<float> head_of(const recipe::Recipe& recipe, int step, const std::string& weights) {
  std::map<std::string, at::Tensor> tensors;
  tensors["fc1.weight"] = at::zeros({5, 192});
  tensors["fc1.bias"] = at::zeros({5});
  tensors["head.weight"] = at::zeros({3, 5});
  tensors["head.bias"] = at::zeros({3});
  checkpoint::load_weights_of(saved_at(recipe, step), tensors, weights);
  const at::Tensor head = tensors.at("head.weight").flatten();
  return {head.const_data_ptr<float>(), head.const_data_ptr<float>() + head.numel()};
}

}  // namespace

TEST_CASE("each EMA of a list of decays is validated, saved and resumed under its own name") {
  const testing::TinyRun tiny;
  const auto recipe = [&](const std::string& output) {
    return tiny.recipe({"steps=4", "ema={\"decay\": [0.8, 0.5]}", "validate.every={\"steps\": 4}",
                        "checkpoint.every={\"steps\": 2}", "output=" + tiny.path(output)});
  };
  const recipe::Recipe whole = recipe("whole"), second = recipe("second");
  CHECK(testing::said_apart([&] { return testing::ended(whole); }) == "code 0 after step 4");
  CHECK(testing::lines(whole.output) ==
        "train 1, train 4, eval val 4, eval ema/val 4, eval ema:0.5/val 4");
  CHECK(testing::said_apart([&] { return testing::ended(second, saved_at(whole, 2)); }) ==
        "code 0 after step 4");
  for (const char* const file : {"ema.safetensors", "ema-0.5.safetensors"}) {
    CAPTURE(file);
    CHECK(!bytes_of(saved_at(whole, 4) / file).empty());
    CHECK(bytes_of(saved_at(whole, 4) / file) == bytes_of(saved_at(second, 4) / file));
  }
  CHECK(bytes_of(saved_at(whole, 4) / "ema.safetensors") !=
        bytes_of(saved_at(whole, 4) / "ema-0.5.safetensors"));
  const auto losses = last_losses(whole);
  CHECK(losses.at("ema/val") != losses.at("ema:0.5/val"));
  CHECK(format::read_state(saved_at(whole, 4)).ema_updates == 4);
  CHECK(format::check_checkpoint(saved_at(whole, 4)).files.contains("ema-0.5.safetensors"));

  // By its decay a mean is found where another one is the first now.
  const recipe::Recipe turned =
      tiny.recipe({"ema={\"decay\": [0.5, 0.9, 0.8]}", "output=" + tiny.path("turned")});
  const std::string said = testing::said_apart([&] {
    const auto run = build_run(turned, {}, saved_at(whole, 2), {});
    std::string text;
    for (const auto& mean : run->means) {
      text += fmt::format("{} {:.6f} ", mean->plan().name,
                          mean->state().at("head.bias").tensor[0].item<double>());
    }
    return text;
  });
  const std::string expected = testing::said_apart([&] {
    const auto run = build_run(whole, {}, saved_at(whole, 2), {});
    const auto value = [](const at::Tensor& tensor) { return tensor[0].item<double>(); };
    return fmt::format("ema {:.6f} ema:0.9 {:.6f} ema:0.8 {:.6f} ",
                       value(run->means[1]->state().at("head.bias").tensor),
                       value(run->learner.tensors().at("head.bias")),
                       value(run->means[0]->state().at("head.bias").tensor));
  });
  CHECK(said == expected);
}

TEST_CASE("an equal mean begins at its start, is the mean of the weights since, and is tested") {
  const testing::TinyRun tiny;
  const auto recipe = [&](const std::string& output) {
    return tiny.recipe({"steps=6", R"(swa={"start": {"steps": 3}, "every": {"steps": 1}, "lr": 0.3,
                            "anneal": {"steps": 2}, "anneal_strategy": "linear"})",
                        "data.test.shards=" + tiny.path("val.tar"), "validate.every={\"steps\": 2}",
                        "checkpoint.every={\"steps\": 1}", "checkpoint.keep_last=9",
                        "log.every={\"steps\": 1}", "output=" + tiny.path(output)});
  };
  const recipe::Recipe whole = recipe("whole"), second = recipe("second");
  CHECK(testing::said_apart([&] { return testing::ended(whole); }) == "code 0 after step 6");
  CHECK(testing::lines(whole.output) ==
        "train 1, train 2, eval val 2, train 3, train 4, eval val 4, eval swa/val 4, train 5, "
        "train 6, eval val 6, eval swa/val 6, eval test 6");
  CHECK_FALSE(fs::exists(saved_at(whole, 2) / "swa.safetensors"));
  CHECK(fs::exists(saved_at(whole, 3) / "swa.safetensors"));
  const auto losses = last_losses(whole);
  CHECK(losses.at("test") == losses.at("swa/val"));
  CHECK(losses.at("test") != losses.at("val"));
  for (const int from : {2, 4}) {
    CHECK(testing::said_apart([&] { return testing::ended(second, saved_at(whole, from)); }) ==
          "code 0 after step 6");
    CHECK(bytes_of(saved_at(whole, 6) / "swa.safetensors") ==
          bytes_of(saved_at(second, 6) / "swa.safetensors"));
    fs::remove_all(second.output);
  }
  std::vector<float> sums(15);
  for (const int step : {3, 4, 5, 6}) {
    const std::vector<float> one = head_of(whole, step, "model");
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += one[i] / 4;
  }
  const std::vector<float> mean = head_of(whole, 6, "swa");
  for (std::size_t i = 0; i < sums.size(); ++i) CHECK(mean[i] == doctest::Approx(sums[i]));
  CHECK(format::read_state(saved_at(whole, 6)).swa_updates == 4);

  std::string rates;
  std::ifstream stream(whole.output + "/metrics.jsonl");
  for (std::string line; std::getline(stream, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("lr")) rates += fmt::format("{:g} ", json.at("lr").get<double>());
  }
  CHECK(rates == "0.1 0.1 0.1 0.1 0.2 0.3 ");
}

TEST_CASE("what is tested at the end is an equal mean unless the best is asked for") {
  const testing::TinyRun tiny;
  const auto tested = [&](const std::string& best, std::int64_t updates) {
    return testing::said_apart([&]() -> std::string {
      const auto run =
          build_run(tiny.recipe({"swa={}", "checkpoint.best=" + best}), {}, std::nullopt, {});
      run->state.swa_updates = updates;
      const optim::Mean* const mean = final_mean(*run);
      return mean == nullptr ? "the model" : mean->plan().name;
    });
  };
  CHECK(tested("top1", 2) == "swa");
  CHECK(tested("top1", 0) == "the model");  // training ended before it began
  CHECK(tested(R"({"weights": "model"})", 2) == "the model");
}

}  // namespace scaletrain::train
