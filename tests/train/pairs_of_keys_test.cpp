// Every key of a recipe that belongs to no row of a list: a pair of runs that differ in it, or why
// there is none. A key without an entry turns this red, and so does one that is read and does
// nothing.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>

#include "lib/recipe/describe.h"
#include "tests/train/pairs_support.h"

namespace scaletrain::train {
namespace {

using testing::Changes;
using testing::Pairs;

struct Pair {
  Changes base, change;  // the second run has both
  bool tokens = false;
};

Pair pair(Changes base, const std::string& change) { return {std::move(base), {change}}; }
Pair alone(const std::string& change) { return {{}, {change}}; }
Pair of_tokens(Changes base, const std::string& change) {
  return {std::move(base), {change}, true};
}

// Below `pointer`, objects whose keys stand in a row of the reference as one.
void list_keys(const recipe::Object& object, const std::string& pointer,
               std::set<std::string>& keys) {
  for (const recipe::Field& field : object.fields()) {
    const std::string below =
        fmt::format("{}{}{}", pointer, pointer.empty() ? "" : ".", field.name);
    const recipe::Object* const inner = field.type->object();
    if (inner == nullptr || inner->is_one_row()) {
      keys.insert(below);
    } else {
      list_keys(*inner, below, keys);
    }
  }
}

// Keys that change nothing of what a run computes, or need what is not here.
const std::map<std::string, const char*>& reasons() {
  static const std::map<std::string, const char*> reasons{
      {"$schema", "for editors"},
      {"version", "has one value"},
      {"description", "a comment"},
      {"extends", "merged before anything is read: tests/recipe/merge_test.cpp"},
      {"name", "for messages, and for the folder where there is no output"},
      {"model.weights.part", "of files of torch.save: tests/parity/weights_test.py"},
      {"model.weights.allow_missing", "lets a mistake pass: tests/checkpoint/weights_test.cpp"},
      {"checkpoint.mtbf_hours", "says how often, by the clock: tests/train/loop/saves_test.cpp"},
      {"checkpoint.async", "the same files, at another time: tests/checkpoint/saver_test.cpp"},
      {"checkpoint.writers", "the same tensors, in other files: tests/end_to_end/pieces_test.py"},
      {"checkpoint.incremental", "the same tensors: tests/end_to_end/incremental_test.py"},
      {"checkpoint.on_failure", "of a disk that fails: tests/train/loop/saves_test.cpp"},
      {"checkpoint.mirror",
       "the same files in a second place: tests/train/loop/mirroring_test.cpp"},
      {"integrity.every", "looks at what is trained: tests/train/loop/integrity_test.cpp"},
      {"integrity.products", "looks at what is computed: tests/train/loop/integrity_test.cpp"},
      {"integrity.action", "of replicas that differ: tests/train/loop/integrity_test.cpp"},
      {"log.to", "exports of metrics.jsonl: tests/end_to_end/trackers_test.py"},
      {"log.port", "a socket of the export: tests/end_to_end/trackers_test.py"},
      {"log.textfile_folder", "a place of the export: tests/end_to_end/trackers_test.py"},
      {"log.images", "for looking: tests/train/loop/pictures_test.cpp"},
      {"log.histograms", "for looking: tests/train/loop/histograms_test.cpp"},
      {"log.webhook", "a receiver of events: tests/end_to_end/tracker_events_test.py"},
      {"log.on_event", "a receiver of events: tests/end_to_end/tracker_events_test.py"},
      {"log.events", "a choice of events: tests/end_to_end/tracker_events_test.py"},
      {"checkpoint.replicate.nodes",
       "the same files in memory: tests/end_to_end/replicate_test.py"},
      {"model.weights.allow_other", "lets a mistake pass: tests/exchange/weights_model_test.cpp"},
      {"model.weights.allow_unused", "lets a mistake pass: tests/checkpoint/weights_test.cpp"},
      {"data.train.folder", "another form of a set: tests/data/set/folder_test.cpp"},
      {"data.val.folder", "another form of a set: tests/data/set/folder_test.cpp"},
      {"data.test.folder", "another form of a set: tests/data/set/folder_test.cpp"},
      {"data.train.cache.name", "the same samples sooner: tests/data/set/kept_set_test.cpp"},
      {"data.train.cache.max_bytes", "the same samples sooner: tests/data/set/kept_set_test.cpp"},
      {"data.val.cache.name", "the same samples sooner: tests/data/set/kept_set_test.cpp"},
      {"data.val.cache.max_bytes", "the same samples sooner: tests/data/set/kept_set_test.cpp"},
      {"data.test.cache.name", "does nothing, which is warned about"},
      {"data.test.cache.max_bytes", "does nothing, which is warned about"},
      {"data.test.tokens", "as data.val.tokens"},
      {"data.token_bytes", "of another file: tests/data/set/token_set_test.cpp"},
      {"data.document_attention", "of files with cards: tests/end_to_end/text_test.py"},
      {"data.threads", "for speed"},
      {"data.prefetch", "for speed"},
      {"data.bad_samples.policy", "of damaged files: tests/end_to_end/bad_data_test.py"},
      {"data.bad_samples.max_rate", "of damaged files: tests/end_to_end/bad_data_test.py"},
      {"data.index_cache", "where indexes lie"},
      {"data.cache.folder", "of remote shards: tests/storage/cache_test.cpp"},
      {"data.cache.max_bytes", "of remote shards: tests/storage/cache_test.cpp"},
      {"data.jpeg", "of damaged JPEGs: tests/data/image/decode_test.cpp"},
      {"data.max_pixels", "of large pictures: tests/data/image/decode_test.cpp"},
      {"data.label.field", "of other shards: tests/format/tar/label_rule_test.cpp"},
      {"data.label_format", "of other shards: tests/data/loader/class_flags_test.cpp"},
      {"data.label.key", "of other shards: tests/format/tar/label_rule_test.cpp"},
      {"data.exif_orientation", "of JPEGs: tests/data/image/exif_test.cpp"},
      {"loss.chunk", "for memory, with the same bits: tests/engine/chunked_loss_test.cpp"},
      {"recompute.units", "for memory, with the same bits: tests/engine/recompute_test.cpp"},
      {"recompute.every", "for memory, with the same bits: tests/engine/recompute_test.cpp"},
      {"recompute.match", "for memory, with the same bits: tests/engine/recompute_test.cpp"},
      {"recompute.budget_mb",
       "for memory, with the same bits: tests/train/memory_options_test.cpp"},
      {"offload.activations",
       "for memory, with the same bits: tests/train/memory_options_test.cpp"},
      {"offload.optimizer", "for memory, with the same bits: tests/train/memory_options_test.cpp"},
      {"offload.parameters", "of several ranks, with the same bits: tests/engine/sharded_test.cpp"},
      {"offload.optimizer_folder",
       "for memory, with the same bits: tests/train/memory_options_test.cpp"},
      {"parallel.replica", "of several ranks: tests/engine/sharded_test.cpp"},
      {"parallel.shard", "of several ranks: tests/engine/sharded_test.cpp"},
      {"parallel.expert", "of several ranks: tests/train/model/expert_layout_test.cpp"},
      {"parallel.shard_level", "of several ranks: tests/engine/sharded_test.cpp"},
      {"parallel.types.parameters", "of several ranks: tests/engine/shard_types_test.cpp"},
      {"parallel.types.reduce", "of several ranks: tests/engine/shard_types_test.cpp"},
      {"batch.memory_mb", "which micro-batch fits: tests/train/tune/batch_search_test.cpp"},
      {"storage.endpoint", "of remote shards"},
      {"storage.region", "of remote shards"},
      {"storage.addressing", "of remote shards"},
      {"storage.connect_timeout_s", "of remote shards"},
      {"storage.stall_timeout_s", "of remote shards"},
      {"storage.give_up_after_s", "of remote shards"},
      {"cost.price", "a rate for the summary: tests/launcher/devices_test.py"},
      {"cost.kwh_price", "a rate for the summary: tests/launcher/devices_test.py"},
      {"cost.g_per_kwh", "a rate for the summary: tests/launcher/devices_test.py"},
      {"cost.region", "a rate for the summary: tests/launcher/devices_test.py"},
      {"profile.after", "for looking: tests/train/rules/profile_test.cpp"},
      {"profile.steps", "for looking: tests/train/rules/profile_test.cpp"},
      {"threads", "for speed"},
      {"deterministic", "on a GPU: tests/end_to_end/gpu_test.py"},
      {"device", "where there is a GPU: tests/end_to_end/gpu_test.py"},
      {"compress.name", "of several ranks: tests/train/state/rank_state_test.cpp"},
      {"compress.rank", "of several ranks: tests/parallel/compress/bucket_test.cpp"},
      {"compress.warmup", "of several ranks: tests/parallel/data_parallel_test.cpp"},
      {"sync.name", "of several ranks: tests/train/state/rank_state_test.cpp"},
      {"sync.steps", "of several ranks: tests/local_sgd/weight_sync_test.cpp"},
      {"sync.outer.lr", "of several ranks: tests/local_sgd/weight_sync_test.cpp"},
      {"sync.outer.momentum", "of several ranks: tests/local_sgd/weight_sync_test.cpp"},
      {"sync.fragments", "of several ranks: tests/local_sgd/weight_sync_test.cpp"},
      {"sync.overlap", "of several ranks: tests/local_sgd/weight_sync_test.cpp"},
      {"sync.mix", "of several ranks: tests/local_sgd/weight_sync_test.cpp"},
      {"sync.staleness", "of several ranks: tests/local_sgd/async_coordinator_test.cpp"},
      {"dist.cpu", "of several ranks: tests/end_to_end/exchange_test.py"},
      {"parallel.pipeline", "of several ranks: tests/end_to_end/pipeline_test.py"},
      {"parallel.schedule", "with the same bits: tests/engine/pipeline_test.cpp"},
      {"parallel.chunks", "with the same bits: tests/engine/pipeline_test.cpp"},
      {"parallel.balance", "with the same bits: tests/end_to_end/pipeline_test.py"},
      {"parallel.tensor", "of several ranks: tests/train/model/tensor_layout_test.cpp"},
      {"parallel.sequence", "of several ranks: tests/train/model/tensor_layout_test.cpp"},
      {"parallel.context", "of several ranks: tests/train/model/context_layout_test.cpp"},
      {"worker", "another program: tests/launcher/own_worker_test.py"},
      {"anomaly.max", "ends a run: tests/train/loop/anomalies_test.cpp"},
      {"anomaly.saturation", "a warning: tests/train/rules/saturation_test.cpp"},
      {"output", "where a run lies"},
  };
  return reasons;
}

std::map<std::string, Pair> pairs_of(const Pairs& files) {
  const std::string a = files.path("a.tar"), b = files.path("b.tar"), val = files.path("val.tar");
  const std::string bce = "loss=binary_cross_entropy", decay = "optimizer.weight_decay=0.1";
  const std::string test = "data.test.shards=" + val;
  const std::string convolutions =
      R"(model={"name": "mobilenet_v3_small", "num_classes": 3, "norm": "group"})";
  const std::string vit = R"(model={"name": "vit_tiny", "num_classes": 3, "patch_size": 4,
                                   "dim": 16, "depth": 2, "heads": 2})";
  const std::string ramp =
      R"(data.resize_ramp={"from": 8, "over": {"steps": 4}, "multiple_of": 4})";
  const Changes growing{convolutions, "data.image_size=16", ramp};
  const Changes growing_batch{
      R"(batch={"global": 12, "per_device": 2,
                "ramp": {"start": 4, "increment": 4, "samples": 20}})"};
  const std::string swa = R"(swa={"start": {"steps": 2}, "every": {"steps": 1}})";
  const std::string swa_lr =
      R"(swa={"start": {"steps": 1}, "every": {"steps": 1}, "lr": 0.3, "anneal": {"steps": 3}})";
  const std::string each = R"(validate.every={"steps": 1})";
  const Changes plateau{"steps=8", each,
                        R"(schedule.plateau={"metric": "loss", "patience": 0, "threshold": 0.9})"};
  const Changes stopping{"steps=8", each,
                         R"(early_stopping={"metric": "loss", "patience": 1, "min_delta": 10})"};
  // The loss falls with each step, and top1 does not rise.
  const Changes slow_plateau{
      "steps=8", each, "optimizer.lr=0.01",
      R"(schedule.plateau={"metric": "loss", "patience": 0, "threshold": 0})"};
  const Changes slow_stopping{"steps=8", each, "optimizer.lr=0.01",
                              R"(early_stopping={"metric": "loss", "patience": 1})"};
  // The first is the best.
  const Changes worse{"checkpoint.keep_last=1",
                      R"(checkpoint.best={"metric": "loss", "mode": "max"})"};
  const Changes warmup{R"(schedule.warmup={"steps": 3})"};
  // A bound so low that about half of the steps are above it.
  const Changes spiky{"steps=12", R"(anomaly={"spike": 1e-6, "window": 4, "max": 12})"};
  const Changes reducing{"steps=12", R"(anomaly={"policy": "reduce_lr", "spike": 1e-6,
                                                  "window": 4, "max": 12})"};
  return {
      {"seed", alone("seed=4")},
      {"task", pair({bce}, "task=multi_label_classification")},
      {"model.name", alone(vit)},
      {"model.num_classes", alone("model.num_classes=4")},
      {"model.in_channels", alone("model.in_channels=1")},
      {"model.weights.path", alone("model.weights.path=" + files.path("weights"))},
      {"model.weights.new_head",
       pair({"model.weights.path=" + files.path("weights")}, "model.weights.new_head=true")},
      {"model.freeze", alone("model.freeze=fc1.*")},
      {"model.linear_probe", alone("model.linear_probe=true")},
      {"data.train.shards", alone(fmt::format(R"(data.train={{"shards": "{}"}})", a))},
      {"data.train.sources",
       alone(fmt::format(
           R"(data.train={{"sources": [{{"shards": "{}"}}, {{"shards": "{}", "weight": 3}}]}})", a,
           b))},
      {"data.train.tokens", of_tokens({}, "data.train.tokens=" + files.path("val.bin"))},
      {"data.train.limit", alone("data.train.limit=8")},
      {"data.train.balanced", alone("data.train.balanced=true")},
      {"data.train.augment", alone("data.train.augment=[\"random_crop\"]")},
      {"data.train.repeats", alone("data.train.repeats=2")},
      {"data.val.shards", alone("data.val.shards=" + b)},
      {"data.val.tokens", of_tokens({}, "data.val.tokens=" + files.path("train.bin"))},
      {"data.val.limit", alone("data.val.limit=5")},
      {"data.test.shards", alone(test)},
      {"data.test.limit", pair({test}, "data.test.limit=5")},
      {"data.extra", alone(fmt::format(R"(data.extra={{"more": {{"shards": "{}"}}}})", b))},
      {"data.image_size", alone("data.image_size=16")},
      {"data.resize_ramp.from", pair(growing, "data.resize_ramp.from=12")},
      {"data.resize_ramp.start", pair(growing, R"(data.resize_ramp.start={"steps": 2})")},
      {"data.resize_ramp.over", pair(growing, R"(data.resize_ramp.over={"steps": 2})")},
      {"data.resize_ramp.multiple_of", pair(growing, "data.resize_ramp.multiple_of=2")},
      {"data.eval_resize", alone("data.eval_resize=11")},
      {"data.eval_filter", alone("data.eval_filter=bicubic")},
      {"data.context", of_tokens({}, "data.context=4")},
      {"data.shuffle_shards", alone("data.shuffle_shards=1")},
      {"data.order", alone("data.order=streamed")},
      {"data.lanes", pair({"data.order=streamed"}, "data.lanes=2")},
      {"data.samples_per_epoch", alone("data.samples_per_epoch=8")},
      {"data.normalize.mean", alone("data.normalize.mean=[0.1, 0.2, 0.3]")},
      {"data.normalize.std", alone("data.normalize.std=[0.1, 0.2, 0.3]")},
      {"batch.per_device", alone("batch.per_device=2")},
      {"batch.accumulate", alone("batch.accumulate=2")},
      {"batch.global", alone("batch.global=8")},
      {"batch.ramp.start", pair(growing_batch, "batch.ramp.start=8")},
      {"batch.ramp.increment", pair(growing_batch, "batch.ramp.increment=8")},
      {"batch.ramp.samples", pair(growing_batch, "batch.ramp.samples=8")},
      {"epochs", alone("epochs=1")},
      {"steps", alone("steps=5")},
      {"precision.name", alone("precision=fp64")},
      {"precision.keep",
       pair({vit, R"(precision={"name": "fp8", "simulate": true})"}, "precision.keep=blocks.0.*")},
      {"optimizer.name", alone("optimizer.name=lars")},
      {"optimizer.lr", alone("optimizer.lr=0.05")},
      {"optimizer.weight_decay", alone(decay)},
      {"optimizer.weight_decay_end", pair({decay}, "optimizer.weight_decay_end=0.5")},
      {"optimizer.decay_norm_and_bias", pair({decay}, "optimizer.decay_norm_and_bias=true")},
      {"optimizer.layer_decay", alone("optimizer.layer_decay=0.5")},
      {"optimizer.lr_base_batch", alone("optimizer.lr_base_batch=2")},
      {"optimizer.lr_scaling", pair({"optimizer.lr_base_batch=2"}, "optimizer.lr_scaling=sqrt")},
      {"optimizer.groups", alone(R"(optimizer.groups=[{"match": "head.*", "lr_scale": 2}])")},
      {"optimizer.centralize_gradients", alone("optimizer.centralize_gradients=true")},
      {"schedule.warmup", {{}, warmup}},
      {"schedule.warmup_from", pair(warmup, "schedule.warmup_from=0.5")},
      {"schedule.warmup_shape",
       pair({warmup[0], "schedule.warmup_from=0.1"}, "schedule.warmup_shape=exponential")},
      {"schedule.decay.name", alone("schedule.decay=cosine")},
      {"schedule.cooldown", pair({"schedule.decay=cosine"}, R"(schedule.cooldown={"steps": 2})")},
      {"schedule.plateau.metric", pair(slow_plateau, "schedule.plateau.metric=top1")},
      {"schedule.plateau.factor", pair(plateau, "schedule.plateau.factor=0.5")},
      {"schedule.plateau.patience", pair(plateau, "schedule.plateau.patience=1")},
      {"schedule.plateau.threshold", pair(plateau, "schedule.plateau.threshold=0")},
      {"schedule.plateau.cooldown", pair(plateau, "schedule.plateau.cooldown=2")},
      {"schedule.plateau.min_lr", pair(plateau, "schedule.plateau.min_lr=0.05")},
      {"schedule.by", pair({"steps=8", "schedule.decay=cosine"}, "schedule.by=epoch")},
      {"loss.name", alone(bce)},
      {"loss.label_smoothing", alone("loss.label_smoothing=0.1")},
      {"loss.class_weights", alone("loss.class_weights=[1, 2, 3]")},
      {"mix.mixup", alone("mix.mixup=0.5")},
      {"mix.cutmix", alone("mix.cutmix=1")},
      {"mix.probability", pair({"mix.mixup=0.5"}, "mix.probability=0.5")},
      {"mix.cutmix_share", pair({R"(mix={"mixup": 0.5, "cutmix": 1})"}, "mix.cutmix_share=0.9")},
      {"mix.off_epochs", pair({"epochs=2", "mix.mixup=0.5"}, "mix.off_epochs=1")},
      {"clip.norm", alone("clip.norm=0.1")},
      {"clip.value", alone("clip.value=0.01")},
      {"clip.adaptive", alone("clip.adaptive=0.01")},
      {"anomaly.policy", pair(spiky, "anomaly.policy=clip")},
      {"anomaly.spike", pair(spiky, "anomaly.spike=100")},
      {"anomaly.window", pair(spiky, "anomaly.window=10")},
      {"anomaly.factor", pair(reducing, "anomaly.factor=0.1")},
      {"sam.rho", pair({"sam={}"}, "sam.rho=0.5")},
      {"sam.adaptive", pair({"sam={}"}, "sam.adaptive=true")},
      {"ema.decay", pair({"ema={}"}, "ema.decay=0.5")},
      {"ema.warmup", pair({"ema={}"}, "ema.warmup=true")},
      {"ema.every", pair({"ema.decay=0.5"}, "ema.every=2")},
      {"swa.start", pair({swa}, R"(swa.start={"steps": 3})")},
      {"swa.every", pair({swa}, R"(swa.every={"steps": 2})")},
      {"swa.lr", pair({swa, R"(swa.anneal={"steps": 1})"}, "swa.lr=0.3")},
      {"swa.anneal", pair({swa_lr}, R"(swa.anneal={"steps": 1})")},
      {"swa.anneal_strategy", pair({swa_lr}, "swa.anneal_strategy=linear")},
      {"validate.every", alone(each)},
      {"early_stopping.metric", pair(slow_stopping, "early_stopping.metric=top1")},
      {"early_stopping.patience", pair(stopping, "early_stopping.patience=2")},
      {"early_stopping.min_delta", pair(stopping, "early_stopping.min_delta=0")},
      {"checkpoint.every", alone(R"(checkpoint.every={"steps": 1})")},
      {"checkpoint.keep_last", pair({"checkpoint.keep_best=0"}, "checkpoint.keep_last=1")},
      {"checkpoint.keep_every", pair({"checkpoint.keep_last=1", "checkpoint.keep_best=0"},
                                     R"(checkpoint.keep_every={"steps": 1})")},
      {"checkpoint.keep_hours",
       pair({"checkpoint.keep_last=1", "checkpoint.keep_best=0"}, "checkpoint.keep_hours=1")},
      {"checkpoint.keep_best", pair(worse, "checkpoint.keep_best=0")},
      {"checkpoint.best.metric", alone("checkpoint.best=loss")},
      {"checkpoint.best.mode", pair({"checkpoint.best=loss"}, "checkpoint.best.mode=max")},
      {"checkpoint.best.weights", pair({"ema.decay=0.5"}, "checkpoint.best.weights=model")},
      {"log.every", alone(R"(log.every={"steps": 3})")},
  };
}

}  // namespace

TEST_CASE("every key has a pair of runs that differ in it, or a reason, and none has both") {
  recipe::Recipe recipe = recipe::blank_recipe();
  std::set<std::string> keys;
  list_keys(*recipe::describe(recipe), "", keys);
  Pairs files;
  std::set<std::string> described;
  for (const auto& [key, why] : reasons()) described.insert(key);
  for (const auto& [key, of_key] : pairs_of(files)) {
    CAPTURE(key);
    CHECK_FALSE(reasons().contains(key));
    described.insert(key);
  }
  for (const std::string& key : keys) {
    CAPTURE(key);
    CHECK(described.contains(key));
  }
  for (const std::string& key : described) {
    CAPTURE(key);
    CHECK(keys.contains(key));
  }
}

TEST_CASE("every key changes a run") {
  Pairs files;
  files.keep_run("weights", {"seed=9"});
  for (const auto& [key, of_key] : pairs_of(files)) {
    CAPTURE(key);
    Changes changed = of_key.base;
    changed.insert(changed.end(), of_key.change.begin(), of_key.change.end());
    const std::string first = files.left_by(of_key.base, of_key.tokens);
    const std::string second = files.left_by(changed, of_key.tokens);
    REQUIRE_MESSAGE(first.starts_with("code 0"), first);
    REQUIRE_MESSAGE(second.starts_with("code 0"), second);
    const bool is_other = first != second;
    CHECK(is_other);
  }
}

}  // namespace scaletrain::train
