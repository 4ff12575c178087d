#include "lib/recipe/idle_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "lib/core/text/compressed_name.h"
#include "lib/core/text/url.h"
#include "lib/recipe/load.h"
#include "lib/recipe/recipe.h"
#include "lib/recipe/schema/node.h"
#include "lib/recipe/schema/type.h"
#include "lib/recipe/sources.h"

namespace scaletrain::recipe {
namespace {

struct IdleRule {
  std::string_view pointer;  // pointer to the key, or to its object
  const char* why;
  bool (*holds)(const Recipe& recipe);
};

bool has_held_out(const Recipe& recipe) { return !held_out(recipe.data).empty(); }
bool validates(const Recipe& recipe) { return recipe.data.val || !recipe.data.extra.empty(); }

bool has_tokens(const Recipe& recipe) { return !recipe.data.train.tokens.empty(); }
bool has_images(const Recipe& recipe) { return !has_tokens(recipe); }

bool has_shards(const Recipe& recipe) {
  return has_images(recipe) &&
         find_shard(recipe.data, [](const std::string&) { return true; }) != nullptr;
}

bool needs_node_cache(const Recipe& recipe) {
  return find_shard(recipe.data, [](const std::string& shard) {
           return core::is_url(shard) || core::is_compressed(shard);
         }) != nullptr;
}

bool is_remote(const Recipe& recipe) {
  return find_shard(recipe.data, core::is_url) != nullptr || core::is_url(recipe.checkpoint.mirror);
}

bool has_s3(const Recipe& recipe) {
  const auto is_s3 = [](const std::string& path) { return core::url_scheme(path) == "s3"; };
  return is_s3(recipe.checkpoint.mirror) || find_shard(recipe.data, is_s3) != nullptr;
}

bool has_no_pipeline(const Recipe& recipe) { return recipe.parallel.pipeline == 1; }

bool mixes(const Recipe& recipe) {
  return recipe.mix && (recipe.mix->mixup > 0 || recipe.mix->cutmix > 0);
}

// True if the last group changes nothing. An earlier group without changes does have an effect: its
// parameters match no later group.
bool changes_nothing(const std::vector<OptimizerGroup>& groups) {
  return !groups.empty() && groups.back().lr_scale == 1 && !groups.back().weight_decay;
}

constexpr const char* kForImages = "does nothing: it is for images, and the sets are of tokens";
constexpr const char* kForTokens = "does nothing: it is for tokens, and the sets are of images";

// If several rules cover a key the first is reported.
constexpr std::array<IdleRule, 61> kIdleRules{{
    {"/data/image_size", kForImages, has_tokens},
    {"/data/resize_ramp", kForImages, has_tokens},
    {"/data/eval_resize", kForImages, has_tokens},
    {"/data/eval_filter", kForImages, has_tokens},
    {"/data/bad_samples", kForImages, has_tokens},
    {"/data/normalize", kForImages, has_tokens},
    {"/data/exif_orientation", kForImages, has_tokens},
    {"/data/jpeg", kForImages, has_tokens},
    {"/data/max_pixels", kForImages, has_tokens},
    {"/data/label", kForImages, has_tokens},
    {"/data/label_format", kForImages, has_tokens},
    {"/data/label_format", R"(does nothing: it is for "task": "multi_label_classification")",
     [](const Recipe& recipe) { return recipe.task != "multi_label_classification"; }},
    {"/data/samples_per_epoch", kForImages, has_tokens},
    {"/data/context", kForTokens, has_images},
    {"/data/token_bytes", kForTokens, has_images},
    {"/data/document_attention", kForTokens, has_images},
    {"/mix", R"(mixes nothing: "mixup" and "cutmix" are 0)",
     [](const Recipe& recipe) { return recipe.mix && !mixes(recipe); }},
    {"/mix", R"(mixes nothing: "probability" is 0)",
     [](const Recipe& recipe) { return recipe.mix && recipe.mix->probability == 0; }},
    {"/mix", R"(mixes nothing: "off_epochs" cover the whole training)",
     [](const Recipe& recipe) {
       return recipe.mix && first_unmixed_epoch(*recipe.mix, recipe.length) <= 0;
     }},
    {"/mix/cutmix_share", R"(does nothing: one of "mixup" and "cutmix" is 0)",
     [](const Recipe& recipe) {
       return recipe.mix && (recipe.mix->mixup == 0 || recipe.mix->cutmix == 0);
     }},
    {"/anomaly/factor", R"(does nothing: it is for "policy": "reduce_lr")",
     [](const Recipe& recipe) { return recipe.anomaly && recipe.anomaly->policy != "reduce_lr"; }},
    {"/batch/memory_mb", R"(does nothing: "per_device" is a number)",
     [](const Recipe& recipe) { return !recipe.batch.is_automatic(); }},
    {"/offload", "moves nothing: all of it is false",
     [](const Recipe& recipe) {
       return recipe.offload && !recipe.offload->activations && !recipe.offload->optimizer &&
              !recipe.offload->parameters;
     }},
    {"/checkpoint/keep_best", "keeps nothing: without data.val no checkpoint is the best",
     [](const Recipe& recipe) { return !recipe.data.val && recipe.checkpoint.keep_best > 0; }},
    {"/checkpoint/best", "does nothing: without data.val no checkpoint is the best",
     [](const Recipe& recipe) { return !recipe.data.val.has_value(); }},
    {"/checkpoint/best/weights", "does nothing: there are no averaged weights (ema, swa)",
     [](const Recipe& recipe) { return !recipe.ema && !recipe.swa; }},
    {"/early_stopping", "does nothing: there is no data.val",
     [](const Recipe& recipe) { return !recipe.data.val.has_value(); }},
    {"/schedule/plateau", "does nothing: there is no data.val",
     [](const Recipe& recipe) { return !recipe.data.val.has_value(); }},
    {"/validate", "does nothing: there is neither data.val nor data.extra",
     [](const Recipe& recipe) { return !validates(recipe); }},
    {"/data/lanes", "does nothing in the indexed order",
     [](const Recipe& recipe) { return recipe.data.order == "indexed"; }},
    {"/data/eval_resize", "does nothing: there is no held-out set",
     [](const Recipe& recipe) { return !has_held_out(recipe); }},
    {"/data/eval_filter", "does nothing: there is no held-out set",
     [](const Recipe& recipe) { return !has_held_out(recipe); }},
    {"/data/bad_samples/max_rate", R"(does nothing: "policy" ends the run at the first bad sample)",
     [](const Recipe& recipe) { return recipe.data.bad_samples.policy == "fail"; }},
    {"/data/shuffle_shards", "does nothing: a balanced source is shuffled by class",
     [](const Recipe& recipe) { return recipe.data.train.balanced; }},
    {"/data/test/cache", "does nothing: the test set is read once",
     [](const Recipe& recipe) { return recipe.data.test && recipe.data.test->cache; }},
    {"/data/cache", "does nothing: all shards are plain files of this machine",
     [](const Recipe& recipe) { return recipe.data.cache && !needs_node_cache(recipe); }},
    {"/data/index_cache", "does nothing: there are no shards",
     [](const Recipe& recipe) { return !has_shards(recipe); }},
    {"/storage", "does nothing: neither data nor a mirror is remote",
     [](const Recipe& recipe) { return !is_remote(recipe); }},
    {"/storage/endpoint", "does nothing: no path begins with s3://",
     [](const Recipe& recipe) { return !has_s3(recipe); }},
    {"/storage/region", "does nothing: no path begins with s3://",
     [](const Recipe& recipe) { return !has_s3(recipe); }},
    {"/precision/keep", "does nothing: it is for fp8",
     [](const Recipe& recipe) { return recipe.precision.name != "fp8"; }},
    {"/optimizer/lr_scaling", "does nothing: there is no lr_base_batch",
     [](const Recipe& recipe) { return !recipe.optimizer.lr_base_batch; }},
    {"/optimizer/decay_norm_and_bias", R"(does nothing: "weight_decay" is 0)",
     [](const Recipe& recipe) {
       return recipe.optimizer.decay_norm_and_bias && recipe.optimizer.weight_decay == 0 &&
              !recipe.optimizer.weight_decay_end;
     }},
    {"/optimizer/weight_decay_end", R"(does nothing: "weight_decay" has this value already)",
     [](const Recipe& recipe) {
       return recipe.optimizer.weight_decay_end == recipe.optimizer.weight_decay;
     }},
    {"/swa/anneal", R"(does nothing: there is no "lr" to anneal to)",
     [](const Recipe& recipe) { return recipe.swa && !recipe.swa->lr; }},
    {"/swa/anneal_strategy", R"(does nothing: there is no "lr" to anneal to)",
     [](const Recipe& recipe) { return recipe.swa && !recipe.swa->lr; }},
    {"/parallel/schedule", "does nothing: there is no pipeline", has_no_pipeline},
    {"/parallel/balance", "does nothing: there is no pipeline", has_no_pipeline},
    {"/parallel/chunks", "does nothing: no pipeline is interleaved",
     [](const Recipe& recipe) {
       return has_no_pipeline(recipe) || recipe.parallel.schedule != "interleaved";
     }},
    {"/parallel/shard_level", "does nothing: the model is not sharded",
     [](const Recipe& recipe) { return recipe.parallel.shard == 1; }},
    {"/parallel/types", "does nothing: the model is not sharded",
     [](const Recipe& recipe) { return recipe.parallel.shard == 1; }},
    {"/dist/cpu", "does nothing: the ranks communicate on GPUs",
     [](const Recipe& recipe) { return recipe.device == "cuda"; }},
    {"/compress/rank", "does nothing: it is for powersgd",
     [](const Recipe& recipe) { return recipe.compress && recipe.compress->name != "powersgd"; }},
    {"/compress/warmup", "does nothing: it is for gradients",
     [](const Recipe& recipe) { return recipe.sync.is_rare(); }},
    {"/sync/steps", "does nothing: gradients are exchanged in every step",
     [](const Recipe& recipe) { return !recipe.sync.is_rare(); }},
    {"/sync/outer", "does nothing: it is for diloco",
     [](const Recipe& recipe) { return recipe.sync.name != "diloco"; }},
    {"/sync/fragments", "does nothing: it is for diloco",
     [](const Recipe& recipe) { return recipe.sync.name != "diloco"; }},
    {"/sync/overlap", "does nothing: it is for diloco",
     [](const Recipe& recipe) { return recipe.sync.name != "diloco"; }},
    {"/sync/mix", "does nothing: no training overlaps an exchange",
     [](const Recipe& recipe) { return recipe.sync.overlap == 0; }},
    {"/sync/staleness", "does nothing: it is for async",
     [](const Recipe& recipe) { return recipe.sync.name != "async"; }},
    {"/optimizer/groups", R"(does nothing in the last one: "lr_scale" or "weight_decay" says what)",
     [](const Recipe& recipe) { return changes_nothing(recipe.optimizer.groups); }},
}};

// True if `pointer` is `key` or lies below it.
bool covers(std::string_view key, std::string_view pointer) {
  return pointer.starts_with(key) && (pointer.size() == key.size() || pointer[key.size()] == '/');
}

// True if every key of `object`, which lies at `pointer`, was written.
bool is_written(const Json& object, const std::string& pointer,
                const std::map<std::string, std::string>& origins) {
  if (!object.is_object()) return origins.contains(pointer);
  for (const auto& [name, value] : object.items()) {
    if (!is_written(value, child_pointer(pointer, name), origins)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> idle_keys(const Recipe& recipe,
                                   const std::map<std::string, std::string>& origins) {
  std::vector<std::string> result;
  std::set<std::string_view> reported;
  const bool is_in_full = is_written(Json::parse(to_json(recipe)), "", origins);
  for (const auto& origin : origins) {
    const std::string& pointer = origin.first;
    if (is_in_full && !origin.second.starts_with("--set ")) continue;
    const auto* const rule = std::find_if(
        kIdleRules.begin(), kIdleRules.end(),
        [&](const IdleRule& one) { return covers(one.pointer, pointer) && one.holds(recipe); });
    if (rule == kIdleRules.end() || !reported.insert(rule->pointer).second) continue;
    result.push_back(fmt::format("{}: {}: {}", origin.second, rule->pointer, rule->why));
  }
  return result;
}

}  // namespace scaletrain::recipe
