#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/core/philox.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

// Every key, each with values of all forms.
const std::vector<std::vector<std::string>>& choices() {
  static const std::vector<std::vector<std::string>> values{
      {"name=x", "name=a.b-c_9"},
      {"seed=0", "seed=9007199254740991", "seed=17"},
      {R"(model={"name": "vit_tiny", "num_classes": 2, "mlp_ratio": 3.3, "heads": 6})",
       R"(model={"name": "resnet50", "num_classes": 1000, "zero_init_residual": true})",
       R"(model={"name": "mlp", "num_classes": 7, "weights": "w.pt", "freeze": "fc1.*"})",
       R"(model={"name": "mlp", "num_classes": 7, "linear_probe": true, "weights": {"path": "/r",
          "part": "ema", "new_head": true, "allow_missing": ["a", "b"], "allow_unused": "c",
          "allow_other": ["d"]}})",
       R"(model={"name": "convnext_tiny", "num_classes": 3, "patch_size": 2, "layer_scale": 0})",
       R"(model={"name": "mobilenet_v3_small", "num_classes": 3, "norm": "sync_batch"})",
       R"(model={"name": "mlp", "num_classes": 7, "dropout": 0.1, "in_channels": 1})"},
      {R"(data.train={"sources": [{"shards": "a.tar", "weight": 3}, {"folder": "/f", "limit": 9}]})",
       R"(data.train={"sources": [{"shards": "a-{0..3}.tar::b.tar", "balanced": true}]})",
       R"(data.train={"shards": "a.tar", "limit": 512, "balanced": true})"},
      {"data.train.folder=/f", R"(data.train.shards=["/a-{0..3}.tar", "b.tar"])",
       R"(data.train.shards=["s3://b/a-{0..3}.tar", "https://host/x.tar"])"},
      {R"(data.train.augment=["random_flip"])",
       R"(data.train.augment=[{"name": "random_resized_crop", "ratio_max": 1.7}, "random_crop"])",
       R"(data.train.augment="timm-a1")"},
      {"data.val.folder=/v", "data.val.shards=v.tar", "data.val=null"},
      {"data.test.folder=/t", "data.test=null"},
      {"data.image_size=32", "data.image_size=4096"},
      {"data.threads=3", "data.threads=auto"},
      {"data.prefetch=1"},
      {"data.shuffle_shards=8"},
      {"data.lanes=8"},
      {"data.samples_per_epoch=1281167"},
      {"data.bad_samples=skip", R"(data.bad_samples={"policy": "skip", "max_rate": 0.001})"},
      {"data.index_cache=/cache", "data.index_cache=rel/./x"},
      {R"(data.cache={"folder": "/c", "max_bytes": 1048576})", "data.cache=null"},
      {"data.normalize.mean=[0.1, 0.30000000000000004, 1]"},
      {"data.normalize.std=[1e-3, 0.1, 10]"},
      {"batch.accumulate=3", "batch.global=640", R"(batch={"per_device": 14})",
       R"(batch={"per_device": "auto", "global": 640, "memory_mb": 7})"},
      {"steps=1", "steps=1000000000000", "epochs=0.1", "epochs=3"},
      {"precision=bf16", "precision=fp32", R"(precision={"name": "fp16", "init_scale": 0.1})",
       R"(precision={"name": "fp8", "scaling": "rowwise", "keep": ["a", "b"], "simulate": true})"},
      {R"(optimizer={"name": "adamw", "lr": 1e-300, "eps": 1e-12, "beta1": 0})",
       R"(optimizer={"name": "sgd", "lr": 0.1, "nesterov": true, "lr_base_batch": 256,
          "lr_scaling": "sqrt", "layer_decay": 0.75, "centralize_gradients": true})",
       R"(optimizer={"name": "muon", "lr": 0.02, "adjust_lr_fn": "match_rms_adamw", "groups":
          [{"match": "*.bias", "lr_scale": 2}, {"match": "head.*", "weight_decay": 0}]})",
       R"(optimizer={"name": "sgd", "lr": 1, "weight_decay": 1e-4, "weight_decay_end": 0,
          "decay_norm_and_bias": true})"},
      {R"(schedule.decay={"name": "step", "every_epochs": 0.5})",
       R"(schedule.decay={"name": "multi_step", "milestones": [1, 2.5]})",
       R"(schedule.decay={"name": "polynomial", "power": 2})", "schedule=cosine"},
      {"schedule.warmup.steps=0", "schedule.warmup.epochs=0.05", "schedule.warmup=null"},
      {"loss.label_smoothing=0.3333333333333333"},
      {"schedule.plateau={}", R"(schedule.plateau={"metric": "loss", "min_lr": 1e-7})"},
      {"clip.norm=0.5", "clip.value=0.1", "clip.adaptive=0.01", "clip=null"},
      {"anomaly={}", R"(anomaly={"policy": "clip", "spike": 0.1, "window": 4, "max": 0})",
       R"(anomaly={"policy": "reduce_lr", "factor": 0.9, "saturation": 7})"},
      {"integrity={}", R"(integrity={"every": 7, "action": "restore", "products": "every"})"},
      {"sam={}", R"(sam={"rho": 2, "adaptive": true})"},
      {"ema={}", R"(ema={"decay": 0.5, "warmup": true, "every": 7})", "ema.decay=[0.5, 0.9]"},
      {"early_stopping={}", R"(early_stopping={"metric": "loss", "min_delta": 0.1})"},
      {"checkpoint.best.weights=model"},
      {"recompute=all", "recompute=none", "recompute.every=2", R"(recompute.match=["h.*", "stem"])",
       "recompute.budget_mb=100", "recompute=null"},
      {"offload.activations=true", R"(offload={"optimizer": true, "activations": false})",
       R"(offload={"optimizer": true, "optimizer_folder": "/nvme/../disk"})"},
      {"parallel.replica=4", R"(parallel={"shard": 1, "replica": 3, "shard_level": "gradients"})"},
      {"parallel.types.reduce=bf16", R"(parallel.types={"parameters": "fp32"})"},
      {"dist.cpu=shm"},
      {"cost.price=2.5", R"(cost={"kwh_price": 0.25, "region": "FR"})", "cost.g_per_kwh=41.5"},
      {"parallel.schedule=interleaved", "parallel.chunks=3", "parallel.balance=time"},
      {"compress=bf16", R"(compress={"name": "fp16", "rank": 2, "warmup": 9})"},
      {"mix.mixup=0.2", "mix={\"cutmix\": 1, \"probability\": 0.5}", "mix=null"},
      {"validate.every.minutes=0.25", "validate.every.steps=5"},
      {"checkpoint.every.steps=5", "checkpoint.every.epochs=0.5"},
      {"checkpoint.every=auto", "checkpoint.mtbf_hours=0.5"},
      {"checkpoint.async=false", "checkpoint.on_failure=continue"},
      {"checkpoint.writers=all", "checkpoint.incremental=true"},
      {"checkpoint.keep_every.steps=5", "checkpoint.keep_every={\"epochs\": 0.5}",
       "checkpoint.keep_hours=2.5"},
      {"checkpoint.mirror=/m/../copies/", "checkpoint.mirror=s3://bucket/runs/a/"},
      {"checkpoint.replicate={}", "checkpoint.replicate.nodes=2", "checkpoint.replicate=null"},
      {"checkpoint.keep_last=1"},
      {"checkpoint.keep_best=0"},
      {"log.every.minutes=2", R"(log={"to": ["csv", "tensorboard"]})",
       R"(log={"images": true, "histograms": {"epochs": 0.5}})",
       R"(log={"to": "prometheus", "port": 9400, "textfile_folder": "/t/../prom"})"},
      {"profile={}", R"(profile={"after": 0, "steps": 1})"},
      {"storage.endpoint=http://127.0.0.1:9000", "storage.region=eu-1"},
      {"storage.addressing=virtual", "storage.connect_timeout_s=0.5"},
      {"storage.stall_timeout_s=1", "storage.give_up_after_s=0"},
      {"threads=4"},
      {"deterministic=true"},
      {"device=cpu", "device=cuda"},
      {"output=/o/../p", "output=q"},
  };
  return values;
}

Recipe random_recipe(std::uint64_t number) {
  core::Philox draws(1, core::DrawPurpose::kInit, 0, number);
  std::vector<std::string> overrides;
  for (const auto& values : choices()) {
    if (draws.below(2) == 0) continue;
    overrides.push_back(values[draws.below(values.size())]);
  }
  return parse_recipe(minimal_recipe(), "r.json", overrides);
}

}  // namespace

TEST_CASE("a resolved recipe reads back to an equal recipe") {
  int different = 0;
  for (std::uint64_t number = 0; number < 120; ++number) {
    const Recipe recipe = random_recipe(number);
    const std::string text = to_json(recipe);
    const Recipe again = parse_recipe(text, "/elsewhere/other name.json");
    REQUIRE(to_json(again) == text);
    REQUIRE(differing_keys(recipe, again).empty());
    if (!differing_keys(recipe, random_recipe(number + 1)).empty()) ++different;
  }
  CHECK(different > 115);  // the recipes are not all the same one
}

TEST_CASE("the resolved recipe has every key with a value") {
  const auto json = nlohmann::json::parse(to_json(parse_recipe(minimal_recipe(), "/x/r.json")));
  CHECK(json.at("version") == 1);
  CHECK(json.at("name") == "r");
  CHECK(json.at("epochs") == 10);
  CHECK_FALSE(json.contains("steps"));
  CHECK_FALSE(json.contains("extends"));
  CHECK_FALSE(json.contains("clip"));
  CHECK(json.at("model") == nlohmann::json{{"name", "mlp"},
                                           {"num_classes", 10},
                                           {"in_channels", 3},
                                           {"linear_probe", false},
                                           {"hidden", 256},
                                           {"layers", 2},
                                           {"dropout", 0.0}});
  CHECK(json.at("batch") == nlohmann::json{{"per_device", 32}, {"accumulate", 1}});
  CHECK(json.at("schedule") == nlohmann::json{{"warmup_from", 0.0},
                                              {"warmup_shape", "linear"},
                                              {"decay", {{"name", "constant"}}},
                                              {"by", "step"}});
  CHECK(json.at("log") == nlohmann::json{{"every", {{"steps", 10}}}, {"port", 0}});
}

TEST_CASE("differing_keys names the keys of both sides, sorted") {
  const Recipe a = parse_recipe(minimal_recipe(), "r.json");
  const Recipe b = parse_recipe(
      minimal_recipe(), "r.json",
      {"optimizer={\"name\": \"adamw\", \"lr\": 0.1}", "steps=3", "clip.norm=1", "seed=1"});
  CHECK(differing_keys(a, a).empty());
  const std::vector<std::string> expected{"/clip",
                                          "/epochs",
                                          "/optimizer/beta1",
                                          "/optimizer/beta2",
                                          "/optimizer/eps",
                                          "/optimizer/momentum",
                                          "/optimizer/name",
                                          "/optimizer/nesterov",
                                          "/seed",
                                          "/steps"};
  CHECK(differing_keys(a, b) == expected);
  CHECK(differing_keys(b, a) == expected);
}

}  // namespace scaletrain::recipe
