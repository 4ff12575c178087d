#include "lib/observe/start_block.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace scaletrain::observe {

namespace {

StartFacts digits() {
  return {.version = "0.2.0",
          .name = "digits",
          .run = "runs/digits",
          .model = "resnet18",
          .trained = 11'181'642,
          .sets = {{.split = "train", .samples = 1400, .shards = 4},
                   {.split = "val", .samples = 200, .shards = 1}},
          .classes = 10,
          .global_batch = 64,
          .per_device = 32,
          .accumulation = 1,
          .data_parallel = 2,
          .steps_per_epoch = 21,
          .total_steps = 2100,
          .optimizer = "adamw",
          .lr = 0.001,
          .weight_decay = 0.05,
          .schedule = "warmup 21 steps, cosine",
          .precision = "bf16",
          .device = "cpu",
          .ranks = 2,
          .layout = {{.name = "data", .size = 2}},
          .memory = {.parameters = 44'764'968, .gradients = 44'726'568, .optimizer = 89'453'136}};
}

}  // namespace

TEST_CASE("the start block names model, data, batch, optimizer, precision, devices and folder") {
  CHECK(start_text(digits()) ==
        "scaletrain 0.2.0: digits\n"
        "  model      resnet18, 11.2 M parameters (all trained)\n"
        "  data       train 1,400 samples (4 shards), val 200 samples; 10 classes\n"
        "  batch      64 = 32 per device x 1 accumulation x 2 data parallel; 21 steps an epoch, "
        "2,100 in all\n"
        "  optimizer  adamw, lr 0.001 (warmup 21 steps, cosine), weight decay 0.05\n"
        "  precision  bf16\n"
        "  devices    2 x cpu (1 node); layout: data 2\n"
        "  memory     179 MB on rank 0 without activations (parameters 44.8 MB, gradients 44.7 MB, "
        "optimizer 89.5 MB)\n"
        "  run        runs/digits\n");
}

TEST_CASE("the start block shows loaded weights and frozen parameters") {
  StartFacts facts = digits();
  facts.trained = 5'130;
  facts.frozen = 1'000'000;
  facts.weights =
      StartFacts::Weights{.path = "timm/resnet18", .loaded = 120, .adapted = 1, .initialized = 2};
  const std::string text = start_text(facts);
  CHECK(text.find("1.0 M parameters (5.1 k trained, 1.0 M frozen)\n") != std::string::npos);
  CHECK(text.find("  weights    timm/resnet18: 120 tensors loaded, 1 adapted, 2 initialized\n") !=
        std::string::npos);
}

TEST_CASE("the start block of a resumed run names the step and not the weights") {
  StartFacts facts = digits();
  facts.step = 1200;
  facts.weights = StartFacts::Weights{.path = "timm/resnet18"};
  const std::string text = start_text(facts);
  CHECK(text.find("  continues  after step 1,200\n") != std::string::npos);
  CHECK(text.find("timm/resnet18") == std::string::npos);
}

TEST_CASE("a set of unknown size and a vocabulary are shown without a guess") {
  StartFacts facts = digits();
  facts.sets = {{.split = "train", .samples = std::nullopt, .shards = 3}};
  facts.classes = 0;
  facts.vocab_size = 50257;
  CHECK(start_text(facts).find("  data       train (3 shards); vocabulary 50,257\n") !=
        std::string::npos);
}

TEST_CASE("folders of images have no shards, and one step is no plural") {
  StartFacts facts = digits();
  facts.sets = {{.split = "train", .samples = 24}};
  facts.steps_per_epoch = 1;
  CHECK(start_text(facts).find("  data       train 24 samples; 10 classes\n") != std::string::npos);
  CHECK(start_text(facts).find("; 1 step an epoch, 2,100 in all\n") != std::string::npos);
  CHECK(
      nlohmann::json::parse(start_json(facts)).at("data").at("sets").at(0).at("shards").is_null());
}

TEST_CASE("start.json holds the facts by their names") {
  StartFacts facts = digits();
  facts.sets[1].samples = std::nullopt;
  const auto json = nlohmann::json::parse(start_json(facts));
  CHECK(json.at("version") == 1);
  CHECK(json.at("model").at("parameters") == 11'181'642);
  CHECK(json.at("model").at("weights").is_null());
  CHECK(json.at("data").at("classes") == 10);
  CHECK(json.at("data").at("vocab_size").is_null());
  CHECK(json.at("data").at("sets").at(0).at("samples") == 1400);
  CHECK(json.at("data").at("sets").at(1).at("samples").is_null());
  CHECK(json.at("batch").at("global") == 64);
  CHECK(json.at("batch").at("data_parallel") == 2);
  CHECK(json.at("total_steps") == 2100);
  CHECK(json.at("layout").at("data") == 2);
  CHECK(json.at("memory_bytes").at("optimizer") == 89'453'136);
}

}  // namespace scaletrain::observe
