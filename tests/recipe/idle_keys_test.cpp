#include "lib/recipe/idle_keys.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

using Texts = std::vector<std::string>;

// What is said of the minimal recipe with `overrides`.
Texts idle_with(const Texts& overrides) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("r.json", minimal_recipe());
  return idle_keys(load_recipe(file, overrides), key_origins(file, overrides));
}

TEST_CASE("an idle key is named with the place where it was written") {
  const test::TemporaryFolder folder;
  const std::string file =
      folder.write("r.json",
                   "{\n\"model\": {\"name\": \"mlp\", \"num_classes\": 10},\n"
                   "\"data\": {\"train\": {\"shards\": \"a.tar\"},\n\"lanes\": 8},\n"
                   "\"optimizer\": {\"name\": \"sgd\", \"lr\": 0.1},\n\"epochs\": 1,\n"
                   "\"checkpoint\": {\"keep_best\": 2}}");
  const Texts set{"validate.every.epochs=2"};
  CHECK(idle_keys(load_recipe(file, set), key_origins(file, set)) ==
        Texts{file + ":7: /checkpoint/keep_best: keeps nothing: without data.val no checkpoint is "
                     "the best",
              file + ":4: /data/lanes: does nothing in the indexed order",
              "--set validate.every.epochs: /validate: does nothing: there is neither data.val nor "
              "data.extra"});
}

TEST_CASE("in a recipe with all defaults written out only keys of --set cause warnings") {
  const test::TemporaryFolder folder;
  const std::string file =
      folder.write("r.json", to_json(parse_recipe(minimal_recipe(), "r.json")));
  CHECK(idle_keys(load_recipe(file), key_origins(file)).empty());
  const Texts set{"data.lanes=8"};
  CHECK(idle_keys(load_recipe(file, set), key_origins(file, set)) ==
        Texts{"--set data.lanes: /data/lanes: does nothing in the indexed order"});
}

TEST_CASE("each key without effect causes one warning, and keys with effect cause none") {
  struct Case {
    Texts overrides;
    std::string idle;  // the pointer; "": nothing is
  };
  const std::string val = "data.val.shards=v.tar", test = "data.test.shards=t.tar";
  const std::string s3 = "data.train.shards=s3://b/a.tar";
  const std::vector<Case> cases{
      {{}, ""},
      {{"mix.mixup=0", "mix.cutmix=0", "mix.probability=0.5"}, "/mix"},
      {{"mix.mixup=0.2"}, ""},
      {{"mix.mixup=0.2", "mix.probability=0"}, "/mix"},
      {{"mix.mixup=0.2", "mix.cutmix_share=0.3"}, "/mix/cutmix_share"},
      {{"mix.mixup=0.2", "mix.cutmix=1", "mix.cutmix_share=0.3"}, ""},
      {{"batch.memory_mb=5"}, "/batch/memory_mb"},
      {{"batch.memory_mb=5", "batch.per_device=auto", "batch.global=64"}, ""},
      {{"offload.optimizer=false"}, "/offload"},
      {{"offload.optimizer=true"}, ""},
      {{"parallel.shard_level=gradients"}, "/parallel/shard_level"},
      {{"parallel.shard_level=gradients", "parallel.shard=2"}, ""},
      {{"parallel.types.reduce=bf16"}, "/parallel/types"},
      {{"parallel.types.reduce=bf16", "parallel.shard=2"}, ""},
      {{"dist.cpu=shm", "device=cuda"}, "/dist/cpu"},
      {{"dist.cpu=shm"}, ""},
      {{"parallel.schedule=gpipe"}, "/parallel/schedule"},
      {{"parallel.balance=time"}, "/parallel/balance"},
      {{"parallel.chunks=2"}, "/parallel/chunks"},
      {{"parallel.chunks=2", "parallel.pipeline=2", "batch.accumulate=2"}, "/parallel/chunks"},
      {{"parallel.chunks=2", "parallel.schedule=interleaved", "parallel.pipeline=2",
        "parallel.balance=time", "batch.accumulate=2", "model.layers=3"},
       ""},
      {{R"(compress={"name": "int8", "rank": 2})"}, "/compress/rank"},
      {{R"(compress={"name": "powersgd", "rank": 2})"}, ""},
      {{R"(compress={"name": "bf16", "warmup": 2})"}, ""},
      {{R"(compress={"name": "bf16", "warmup": 2})", "sync=diloco"}, "/compress/warmup"},
      {{"sync.steps=4"}, "/sync/steps"},
      {{R"(sync={"name": "periodic", "steps": 4})"}, ""},
      {{R"(sync={"name": "periodic", "fragments": 2})"}, "/sync/fragments"},
      {{R"(sync={"name": "periodic", "outer": {"lr": 1}})"}, "/sync/outer"},
      {{R"(sync={"name": "diloco", "fragments": 2, "outer": {"lr": 1}})"}, ""},
      {{R"(sync={"name": "diloco", "staleness": 2})"}, "/sync/staleness"},
      {{R"(sync={"name": "async", "staleness": 2})"}, ""},
      {{R"(sync={"name": "periodic", "overlap": 2})"}, "/sync/overlap"},
      {{R"(sync={"name": "diloco", "mix": 0.2})"}, "/sync/mix"},
      {{R"(sync={"name": "diloco", "overlap": 5, "mix": 0.2})"}, ""},
      {{"early_stopping.patience=3"}, "/early_stopping"},
      {{"early_stopping.patience=3", val}, ""},
      {{"schedule.plateau.patience=3"}, "/schedule/plateau"},
      {{"anomaly.factor=0.1"}, "/anomaly/factor"},
      {{"anomaly.factor=0.1", "anomaly.policy=reduce_lr"}, ""},
      {{"schedule.plateau.patience=3", val}, ""},
      {{R"(precision={"name": "bf16", "keep": "fc*"})"}, "/precision/keep"},
      {{"optimizer.lr_scaling=sqrt"}, "/optimizer/lr_scaling"},
      {{"optimizer.lr_scaling=sqrt", "optimizer.lr_base_batch=256"}, ""},
      {{"mix.mixup=0.2", "mix.off_epochs=10"}, "/mix"},
      {{"mix.mixup=0.2", "mix.off_epochs=9"}, ""},
      {{"checkpoint.best.weights=model", val}, "/checkpoint/best/weights"},
      {{"checkpoint.best.weights=model", "ema.decay=0.9", val}, ""},
      {{"checkpoint.best.weights=model", "swa={}", val}, ""},
      {{"swa.anneal.steps=3"}, "/swa/anneal"},
      {{"swa.anneal_strategy=linear"}, "/swa/anneal_strategy"},
      {{"swa.anneal.steps=3", "swa.anneal_strategy=linear", "swa.lr=0.1"}, ""},
      {{"checkpoint.keep_best=1"}, "/checkpoint/keep_best"},
      {{"checkpoint.keep_best=0"}, ""},
      {{"checkpoint.keep_best=1", val}, ""},
      {{"validate.every.steps=1"}, "/validate"},
      {{"validate.every.steps=1", val}, ""},
      {{"data.context=8"}, "/data/context"},
      {{"data.token_bytes=4"}, "/data/token_bytes"},
      {{"data.label_format=multi_hot"}, "/data/label_format"},
      {{"data.document_attention=true"}, "/data/document_attention"},
      {{"data.lanes=64"}, "/data/lanes"},
      {{"data.lanes=64", "data.order=streamed"}, ""},
      {{"data.eval_resize=256"}, "/data/eval_resize"},
      {{"data.eval_filter=bicubic"}, "/data/eval_filter"},
      {{"data.eval_resize=256", "data.eval_filter=bicubic", test}, ""},
      {{"data.bad_samples.max_rate=0.1"}, "/data/bad_samples/max_rate"},
      {{"data.bad_samples.max_rate=0.1", "data.bad_samples.policy=skip"}, ""},
      {{"data.shuffle_shards=4"}, ""},
      {{"data.shuffle_shards=4", "data.train.balanced=true"}, "/data/shuffle_shards"},
      {{test, "data.test.cache=memory"}, "/data/test/cache"},
      {{val, "data.val.cache=memory"}, ""},
      {{"data.cache.folder=/c", "data.cache.max_bytes=1048576"}, "/data/cache"},
      {{"data.cache.folder=/c", "data.cache.max_bytes=1048576", s3}, ""},
      {{"data.cache.folder=/c", "data.cache.max_bytes=1048576", "data.order=streamed",
        "data.train.shards=a.tar.gz"},
       ""},
      {{"data.index_cache=/i"}, ""},
      {{"data.index_cache=/i", "data.train.folder=/f"}, "/data/index_cache"},
      {{"storage.give_up_after_s=60"}, "/storage"},
      {{"storage.give_up_after_s=60", "data.train.shards=https://h/a.tar"}, ""},
      {{"storage.give_up_after_s=60", "storage.region=eu", "checkpoint.mirror=s3://b/a"}, ""},
      {{"storage.give_up_after_s=60", "checkpoint.mirror=/m"}, "/storage"},
      {{"storage.endpoint=https://e", "data.train.shards=https://h/a.tar"}, "/storage/endpoint"},
      {{"storage.region=eu", "data.train.shards=https://h/a.tar"}, "/storage/region"},
      {{"storage.endpoint=https://e", "storage.region=eu", s3}, ""},
      {{"optimizer.decay_norm_and_bias=true"}, "/optimizer/decay_norm_and_bias"},
      {{"optimizer.decay_norm_and_bias=true", "optimizer.weight_decay=0.1"}, ""},
      {{"optimizer.decay_norm_and_bias=true", "optimizer.weight_decay_end=0.1"}, ""},
      {{"optimizer.weight_decay_end=0"}, "/optimizer/weight_decay_end"},
      {{"optimizer.weight_decay_end=0.1"}, ""},
      {{R"(optimizer.groups=[{"match": "a", "lr_scale": 2}, {"match": "b"}])"},
       "/optimizer/groups"},
      {{R"(optimizer.groups=[{"match": "a"}, {"match": "b", "weight_decay": 0}])"}, ""},
  };
  for (const Case& one : cases) {
    const Texts found = idle_with(one.overrides);
    CAPTURE(one.overrides);
    REQUIRE(found.size() == (one.idle.empty() ? 0 : 1));
    if (!found.empty()) CHECK(found[0].find(": " + one.idle + ": ") != std::string::npos);
  }
}

TEST_CASE("a mix that says neither mixup nor cutmix is refused") {
  CHECK(error_of(minimal_recipe("\"mix\": {}")) ==
        "r.json:6: /mix: none of \"mixup\", \"cutmix\" is there\n  add one of them");
}

}  // namespace
}  // namespace scaletrain::recipe
