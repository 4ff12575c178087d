#include "lib/checkpoint/weights.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "tests/format/checkpoint_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::checkpoint {
namespace {

// tests/parity/weights_test.py loads what timm, torchvision and transformers save.

const units::WeightRules& rules() {
  static const units::WeightRules rules{.head = "fc",
                                        .input = "conv.weight",
                                        .patch_positions = "pos",
                                        .first_tokens = 1,
                                        .positions = "wpe",
                                        .also_called = {{"lm_head.weight", "wte.weight"}}};
  return rules;
}

at::Tensor random(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed));
}

// A model's tensors, which start as zero, and a file of others.
struct LoadCase {
  test::TemporaryFolder folder;
  Tensors model, file;
  recipe::Weights weights;

  explicit LoadCase(Tensors model_tensors = {{"a.weight", at::zeros({2, 3})},
                                             {"a.bias", at::zeros({2})}},
                    Tensors file_tensors = {{"a.weight", random({2, 3}, 1)},
                                            {"a.bias", random({2}, 2)}})
      : model(std::move(model_tensors)), file(std::move(file_tensors)) {
    weights.path = folder.file("w.safetensors");
  }

  WeightReport load() {
    HostTensors(units::full_shards(file)).write(core::system_disk(), weights.path);
    return load_weights(weights, rules(), model);
  }
  // Of the error, without the file in front.
  std::string refusal() {
    const std::string found = test::message_of<core::CheckpointError>([&] { load(); });
    for (const auto& item : model) {
      CAPTURE(item.first);
      CHECK((item.second.eq(0).all().item<bool>()));  // nothing was changed
    }
    const std::string place = weights.path + ": ";
    return found.starts_with(place) ? found.substr(place.size()) : found;
  }
};

}  // namespace

TEST_CASE("tensors are taken by name, converted to the model's types") {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    CAPTURE(c10::toString(type));
    LoadCase one;
    for (auto& [name, tensor] : one.file) tensor = tensor.to(type);
    const WeightReport report = one.load();
    CHECK((report.taken == std::vector<std::string>{"a.bias", "a.weight"}));
    CHECK((report.files == std::vector<std::string>{one.weights.path}));
    CHECK(summary(report) ==
          "2 tensors taken, 0 adapted, 0 left as initialised, 0 missing, 0 unused");
    for (const auto& item : one.model) {
      CHECK((at::equal(item.second, one.file.at(item.first).to(at::kFloat))));
    }
  }
}

TEST_CASE("a channels-last kernel and a count are filled, too") {
  LoadCase one({{"k", at::zeros({2, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast)},
                {"n", at::zeros({}, at::kLong)}},
               {{"k", random({2, 3, 2, 2}, 3)}, {"n", at::full({}, 7, at::kLong)}});
  one.load();
  CHECK((at::equal(one.model.at("k"), one.file.at("k"))));
  CHECK(one.model.at("n").item<std::int64_t>() == 7);
}

TEST_CASE("what does not fit is refused, all at once, and nothing is changed") {
  LoadCase one({{"a", at::zeros({2})}, {"b", at::zeros({2})}, {"c", at::zeros({2})}},
               {{"a", at::ones({2, 1})}, {"b", at::ones({2, 2}, at::kByte)}, {"d", at::ones({2})}});
  CHECK(
      one.refusal() ==
      "does not fit the model: tensors 1 missing (c); 1 unused (d); 1 of another shape (a: [2, 1] "
      "instead of [2]); 1 of another dtype (b: U8 for Float)\n  set the model of the weights, with "
      "its sizes");
  one.file = {{"a", at::ones({2})}, {"b", at::ones({2})}, {"d", at::ones({2})}};
  CHECK(one.refusal() ==
        "does not fit the model: tensors 1 missing (c); 1 unused (d)\n  set the model of the "
        "weights, or give patterns in /model/weights: \"allow_missing\" for tensors that keep "
        "their initialization, \"allow_unused\" for tensors to ignore");
}

TEST_CASE("patterns allow what is missing and what is unused, each its own") {
  const auto make = [] {
    return LoadCase({{"a", at::zeros({2})}, {"b.0.w", at::zeros({2})}, {"b.1.w", at::zeros({2})}},
                    {{"a", at::ones({2})}, {"x.0", at::ones({2})}});
  };
  LoadCase one = make();
  one.weights.allow_missing = {"b.*"};
  CHECK(one.refusal().starts_with("does not fit the model: tensors 1 unused (x.0)\n"));
  LoadCase two = make();
  two.weights.allow_unused = {"x.*"};
  CHECK(two.refusal().starts_with("does not fit the model: tensors 2 missing (b.0.w, b.1.w)\n"));
  LoadCase three = make();
  three.weights.allow_missing = {"c", "b.*"};
  three.weights.allow_unused = {"*"};
  CHECK(summary(three.load()) ==
        "1 tensor taken, 0 adapted, 0 left as initialised, 2 missing (b.0.w, b.1.w), 1 unused "
        "(x.0)");
  LoadCase nothing = make();
  nothing.file.erase("a");
  nothing.weights.allow_missing = nothing.weights.allow_unused = {"*"};
  CHECK(nothing.refusal() == "has no tensor of the model\n  set the model of the weights");
}

TEST_CASE("names may have what wrappers put in front, or lack it") {
  for (const char* const prefix : {"module.", "_orig_mod.", "model.", "transformer."}) {
    CAPTURE(prefix);
    LoadCase longer, shorter;
    const Tensors plain = longer.file;
    longer.file.clear();
    for (const auto& [name, tensor] : plain) longer.file[prefix + name] = tensor;
    CHECK(longer.load().taken.size() == 2);
    CHECK((at::equal(longer.model.at("a.bias"), plain.at("a.bias"))));
    Tensors wrapped;
    for (const auto& [name, tensor] : shorter.model) wrapped[prefix + name] = tensor;
    shorter.model = wrapped;
    CHECK(shorter.load().taken.size() == 2);
  }
}

TEST_CASE("a common prefix of wrappers is left out, whatever else the file has beside the model") {
  for (const char* const prefix : {"net.", "backbone.", "_forward_module.model._orig_mod.",
                                   "model.net.", "_fsdp_wrapped_module.module."}) {
    CAPTURE(prefix);
    LoadCase wrapped;
    const Tensors plain = wrapped.file;
    wrapped.file.clear();
    for (const auto& [name, tensor] : plain) wrapped.file[prefix + name] = tensor;
    wrapped.file["criterion.weight"] = at::ones({2});
    wrapped.weights.allow_unused = {"criterion.*"};
    CHECK(wrapped.load().taken.size() == 2);
    CHECK((at::equal(wrapped.model.at("a.bias"), plain.at("a.bias"))));
  }
  LoadCase other({{"a", at::zeros({2})}}, {{"net.b", at::ones({2})}});
  CHECK(other.refusal().starts_with(
      "does not fit the model: tensors 1 missing (a); 1 unused (net.b)\n"));
}

TEST_CASE("a LoRA adapter is refused by name") {
  LoadCase adapter({{"a.weight", at::zeros({2, 2})}},
                   {{"base_model.model.a.lora_A.weight", at::ones({1, 2})},
                    {"base_model.model.a.lora_B.weight", at::ones({2, 1})}});
  CHECK(
      adapter.refusal().starts_with("is a LoRA adapter (base_model.model.a.lora_A.weight), not "
                                    "the weights of a model\n  merge it into its base model"));
}

TEST_CASE("a tensor that occurs twice is one, or one too many") {
  const at::Tensor embedding = random({4, 2}, 5);
  const auto make = [&](const at::Tensor& head) {
    return LoadCase({{"wte.weight", at::zeros({4, 2})}},
                    {{"transformer.wte.weight", embedding}, {"lm_head.weight", head}});
  };
  LoadCase tied = make(embedding.clone());
  CHECK(tied.load().unused.empty());
  LoadCase untied = make(embedding + 1);
  CHECK(untied.refusal().starts_with("does not fit the model: tensors 1 unused ("));
  LoadCase alone({{"wte.weight", at::zeros({4, 2})}}, {{"lm_head.weight", embedding}});
  alone.load();
  CHECK((at::equal(alone.model.at("wte.weight"), embedding)));
}

TEST_CASE("masks, frequencies and counts are no mistake") {
  LoadCase one;
  for (const char* const name :
       {"h.0.attn.bias", "h.0.attn.masked_bias", "model.rotary_emb.inv_freq",
        "layers.0.self_attn.rotary_emb.inv_freq", "bn.num_batches_tracked"}) {
    one.file[name] = at::ones({1});
  }
  one.model["bn1.num_batches_tracked"] = at::zeros({}, at::kLong);
  const WeightReport report = one.load();
  CHECK(report.unused.size() == 5);
  CHECK((report.missing == std::vector<std::string>{"bn1.num_batches_tracked"}));
  one.file["h.0.attn.c_attn.bias"] = at::ones({1});
  CHECK(test::message_of<core::CheckpointError>([&] { one.load(); }).find("1 unused (h.0.attn.c") !=
        std::string::npos);
}

TEST_CASE("a head for another number of classes stays as initialised") {
  LoadCase one(
      {{"a", at::zeros({2})}, {"fc.weight", at::zeros({5, 2})}, {"fc.bias", at::zeros({5})}},
      {{"a", at::ones({2})}, {"fc.weight", at::ones({10, 2})}, {"fc.bias", at::ones({10})}});
  const WeightReport report = one.load();
  CHECK(summary(report) ==
        "1 tensor taken, 0 adapted, 2 left as initialised (fc.bias, fc.weight), 0 missing, 0 "
        "unused");
  CHECK((one.model.at("fc.weight").eq(0).all().item<bool>()));
  LoadCase wider({{"fc.weight", at::zeros({5, 2})}}, {{"fc.weight", at::ones({10, 3})}});
  CHECK(wider.refusal().find("fc.weight: [10, 3] instead of [5, 2]") != std::string::npos);
  LoadCase other({{"fc2.weight", at::zeros({5, 2})}}, {{"fc2.weight", at::ones({10, 2})}});
  CHECK(other.refusal().find("fc2.weight: [10, 2] instead of [5, 2]") != std::string::npos);
  LoadCase same({{"fc.bias", at::zeros({10})}}, {{"fc.bias", at::ones({10})}});
  CHECK(same.load().initial.empty());
}

TEST_CASE("a new head is one whatever the file has") {
  const auto make = [](Tensors head) {
    Tensors file{{"a", at::ones({2})}};
    file.merge(head);
    return LoadCase({{"a", at::zeros({2})}, {"fc.weight", at::zeros({5, 2})}}, std::move(file));
  };
  for (const Tensors& head : {Tensors{}, Tensors{{"fc.weight", at::ones({5, 2})}},
                              Tensors{{"fc.weight", at::ones({5, 3})}}}) {
    LoadCase one = make(head);
    one.weights.new_head = true;
    CHECK((one.load().initial == std::vector<std::string>{"fc.weight"}));
    CHECK((one.model.at("fc.weight").eq(0).all().item<bool>()));
    CHECK((one.model.at("a").eq(1).all().item<bool>()));
  }
  LoadCase headless = make({});
  headless.weights.new_head = true;
  HostTensors(units::full_shards(headless.file)).write(core::system_disk(), headless.weights.path);
  CHECK(test::message_of<core::RecipeError>([&] {
          load_weights(headless.weights, {}, headless.model);
        }) == "/model/weights/new_head: the model does not define a head\n  leave it out");
}

TEST_CASE("first kernels and positions are made to fit") {
  LoadCase one({{"conv.weight", at::zeros({4, 3, 2, 2})},
                {"pos", at::zeros({1, 1 + 64, 6})},
                {"wpe", at::zeros({8, 6})}},
               {{"conv.weight", random({4, 1, 2, 2}, 1)},
                {"pos", random({1, 1 + 16, 6}, 2)},
                {"wpe", random({32, 6}, 3)}});
  const WeightReport report = one.load();
  CHECK(
      summary(report) ==
      "0 tensors taken, 3 adapted (conv.weight: 1 to 3 channels, pos: 4x4 to 8x8 patches, wpe: the "
      "first 8 of 32 positions), 0 left as initialised, 0 missing, 0 unused");
  CHECK((at::allclose(one.model.at("conv.weight").sum(1, true), one.file.at("conv.weight"))));
  CHECK((at::equal(one.model.at("pos")[0][0], one.file.at("pos")[0][0])));
  CHECK((at::equal(one.model.at("wpe"), one.file.at("wpe").narrow(0, 0, 8))));
}

TEST_CASE("positions that cannot be had are refused") {
  LoadCase longer({{"wpe", at::zeros({64, 6})}}, {{"wpe", at::ones({32, 6})}});
  CHECK(longer.refusal() ==
        "has 32 positions (wpe), and the model has 64\n  set /model/positions to 32 or less");
  LoadCase wider({{"wpe", at::zeros({8, 6})}}, {{"wpe", at::ones({32, 5})}});
  CHECK(wider.refusal().find("wpe: [32, 5] instead of [8, 6]") != std::string::npos);
  LoadCase odd({{"pos", at::zeros({1, 17, 6})}}, {{"pos", at::ones({1, 19, 6})}});
  CHECK(odd.refusal().find("pos: [1, 19, 6] instead of [1, 17, 6]") != std::string::npos);
  LoadCase wide({{"conv.weight", at::zeros({4, 3, 2, 2})}},
                {{"conv.weight", at::ones({4, 1, 3, 3})}});
  CHECK(wide.refusal().find("conv.weight: [4, 1, 3, 3] instead of") != std::string::npos);
}

TEST_CASE("another number of heads is refused, by a config.json or by a recipe of ours") {
  units::WeightRules of_heads{.heads = 4, .heads_name = "n_head"};
  LoadCase one;
  one.load();
  const auto found = [&] {
    return test::message_of<core::CheckpointError>(
        [&] { load_weights(one.weights, of_heads, one.model); });
  };
  one.folder.write("config.json", R"({"n_head": 8, "num_attention_heads": 3})");
  CHECK(found() == one.folder.file("config.json") +
                       ": has 8 attention heads (/n_head), and the model has 4\n  set /model/heads "
                       "to 8");
  of_heads.heads_name = "";
  CHECK(found() == "nothing was thrown");
  of_heads.heads_name = "n_layer";
  CHECK(found() == "nothing was thrown");
  one.folder.write("config.json", R"({"n_head": 4})");
  of_heads.heads_name = "n_head";
  CHECK(found() == "nothing was thrown");

  test::Sensible ours(7);
  ours.recipe = R"({"model": {"name": "vit_tiny", "heads": 8}})";
  one.weights.path = test::publish(one.folder.path / "run", ours, 7).string();
  CHECK(found() == one.weights.path +
                       "/recipe.json: has 8 attention heads (/model/heads), and the model has 4\n"
                       "  set /model/heads to 8");
  of_heads.heads = 0;  // a model without, which its tensors refuse
  CHECK(found().find("heads") == std::string::npos);
}

TEST_CASE("progress is reported for each tensor that is renamed or copied") {
  LoadCase one({{"wte.weight", at::zeros({2})}, {"a", at::zeros({2})}},
               {{"lm_head.weight", at::ones({2})}, {"a", at::ones({2})}});
  one.load();
  int calls = 0;
  load_weights(one.weights, rules(), one.model, [&calls] { ++calls; });
  CHECK(calls == 3);
}

TEST_CASE("a value that is not finite is refused by its tensor") {
  LoadCase one;
  one.file.at("a.bias")[1] = std::numeric_limits<float>::quiet_NaN();
  CHECK(one.refusal() ==
        "holds a value of \"a.bias\" that is not finite\n  use weights from before the training "
        "diverged");
}

TEST_CASE("a report is JSON with a list of each kind") {
  LoadCase one;
  one.file["x"] = at::ones({1});
  one.weights.allow_unused = {"x"};
  CHECK(to_json(one.load()) == fmt::format(R"({{
  "files": [
    "{}"
  ],
  "taken": [
    "a.bias",
    "a.weight"
  ],
  "adapted": {{}},
  "initial": [],
  "missing": [],
  "unused": [
    "x"
  ]
}}
)",
                                           one.weights.path));
}

}  // namespace scaletrain::checkpoint
