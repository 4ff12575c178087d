#include "lib/recipe/describe.h"

#include "lib/recipe/component.h"
#include "lib/recipe/duration.h"
#include "lib/recipe/lists.h"
#include "lib/recipe/object_list.h"
#include "lib/recipe/paths.h"

namespace scaletrain::recipe {
namespace {

using Unit = Duration::Unit;

constexpr double kMostCount = 1 << 20;  // samples, threads, files: far above any sensible number
const Units& any_unit() {
  static const Units units{Unit::kSteps, Unit::kEpochs, Unit::kMinutes};
  return units;
}

std::unique_ptr<Object> object() { return std::make_unique<Object>(); }

TypePtr sample_count(std::int64_t& value) { return integer(value, from(1).to(1e15)); }

void add_places(Object& keys, Source& value) {
  keys.add("shards", shard_list(value.shards), "tar shards in WebDataset form")
      .add("folder", path(value.folder), "a folder with one sub-folder of images per class");
}

void add_limit(Object& keys, Source& value) {
  keys.add("limit", optional(value.limit, sample_count),
           "at most so many of its samples, the same in every run");
}

void add_balanced(Object& keys, Source& value) {
  keys.add("balanced", flag(value.balanced), "every class as often as every other");
}

void add_cache(Object& keys, Source& value) {
  keys.add(
      "cache",
      optional(
          value.cache,
          [](SampleCache& inner) {
            auto cache = object();
            cache->add("name", choice(inner.name, {"memory"}), "where: in the memory of each rank")
                .add("max_bytes", integer(inner.max_bytes, from(1).to(9007199254740991.0)),
                     "of a rank; samples that do not fit are read each time")
                .set_short_for("name");
            return cache;
          }),
      "its samples, as they are stored, are kept once they were read: for small sets");
}

TypePtr mixed_source(Source& value) {
  auto keys = object();
  add_places(*keys, value);
  keys->add("weight", number(value.weight, above(0).to(1e6)), "how much of an epoch is its");
  add_limit(*keys, value);
  add_balanced(*keys, value);
  keys->exactly_one({"shards", "folder"});
  return keys;
}

TypePtr train_source(Source& value) {
  auto keys = object();
  add_places(*keys, value);
  keys->add("sources", object_list<Source>(value.sources, mixed_source),
            "several sources, mixed by weight")
      .exactly_one({"shards", "folder", "sources"});
  add_limit(*keys, value);
  add_balanced(*keys, value);
  add_cache(*keys, value);
  keys->add("augment", components(value.augment, transforms(), augment_presets()),
            "what is done to an image at random, in this order")
      .add("repeats", integer(value.repeats, from(1).to(64)),
           "repeated augmentation: how often a sample comes in a global batch, with other draws "
           "each time; an epoch has so many times fewer samples");
  return keys;
}

TypePtr held_out(std::optional<Source>& value) {
  return optional(value, [](Source& inner) {
    auto keys = object();
    add_places(*keys, inner);
    keys->exactly_one({"shards", "folder"});
    add_limit(*keys, inner);
    add_cache(*keys, inner);
    return keys;
  });
}

TypePtr bad_samples(BadSamples& value) {
  auto keys = object();
  keys->add("policy", choice(value.policy, {"fail", "skip"}),
            "end the run, or take other samples in their place and list them")
      .add("max_rate", number(value.max_rate, from(0).to(1)),
           "part of the samples that may be skipped, of 1,000 at least; more end the run")
      .set_short_for("policy");
  return keys;
}

TypePtr normalize(Normalize& value) {
  auto keys = object();
  keys->add("mean", numbers(value.mean, 3, from(0).to(1)), "of red, green, blue; values are 0 to 1")
      .add("std", numbers(value.std, 3, above(0).to(10)), "of red, green, blue");
  return keys;
}

TypePtr cache(std::optional<Cache>& value) {
  return optional(value, [](Cache& inner) {
    auto keys = object();
    keys->require("folder", path(inner.folder), "on a disk or tmpfs of the node; jobs may share it")
        .require("max_bytes", integer(inner.max_bytes, from(1 << 20).to(9007199254740991.0)),
                 "the least recently used shards are removed beyond it");
    return keys;
  });
}

TypePtr data(Data& value) {
  auto keys = object();
  keys->require("train", train_source(value.train), "the samples to learn from")
      .add("val", held_out(value.val), "the samples that choose the best checkpoint")
      .add("test", held_out(value.test), "the samples that are looked at once, at the end")
      .add("image_size", integer(value.image_size, from(8).to(4096)),
           "height and width of an image for the model")
      .add("eval_resize", integer(value.eval_resize, from(0).to(8192)),
           "what the shorter side of a held-out image becomes before the centre of image_size is "
           "cut out, 256 for 224 as a rule; 0: image_size")
      .add("eval_filter", choice(value.eval_filter, {"bilinear", "bicubic"}),
           "how pixels of held-out images are weighed, always against aliasing")
      .add("threads", integer(value.threads, from(0).to(1024)),
           "decoding threads of a rank; 0: automatic")
      .add("prefetch", integer(value.prefetch, from(1).to(1024)), "batches that are read ahead")
      .add("shuffle_shards", integer(value.shuffle_shards, from(0).to(kMostCount)),
           "samples are shuffled within groups of so many shards; 0: over all of them")
      .add("order", choice(value.order, {"indexed", "streamed"}),
           "indexed: any sample may follow any other; streamed: ranks read their own shards, one "
           "after the other")
      .add("lanes", integer(value.lanes, from(1).to(65536)),
           "streams of the streamed order; a multiple of the number of ranks")
      .add("samples_per_epoch", integer(value.samples_per_epoch, from(0).to(1e15)),
           "length of an epoch; 0: as many as the training set has")
      .add("bad_samples", bad_samples(value.bad_samples), "images that do not decode")
      .add("index_cache", path(value.index_cache),
           "folder for the shards' indexes; without it they are put beside the shards, where that "
           "folder can be written")
      .add("cache", cache(value.cache),
           "remote shards are kept as files; without it ranges are read from the server")
      .add("normalize", normalize(value.normalize), "what is taken from the pixels and divided by")
      .add("exif_orientation", flag(value.exif_orientation),
           "JPEGs are turned as their EXIF says; torchvision does not")
      .reserve({"extra"});
  return keys;
}

TypePtr batch(Batch& value) {
  const auto count = [](std::int64_t& inner) { return integer(inner, from(1).to(kMostCount)); };
  auto keys = object();
  keys->add("per_device", count(value.per_device), "samples that a device computes at a time")
      .add("accumulate", optional(value.accumulate, count),
           "micro-batches of a step; 1 where \"global\" is not given")
      .add("global",
           optional(value.global,
                    [](std::int64_t& inner) { return integer(inner, from(1).to(1e9)); }),
           "samples of a step over all ranks; the micro-batches follow from it")
      .at_most_one({"accumulate", "global"});
  return keys;
}

TypePtr model(Model& value) {
  return component(value, models(), [&value](Object& keys) {
    keys.require("num_classes", integer(value.num_classes, from(1).to(kMostCount)),
                 "number of classes");
  });
}

TypePtr optimizer(Optimizer& value) {
  return component(value, optimizers(), [&value](Object& keys) {
    keys.require("lr", number(value.lr, above(0).to(1000)), "peak learning rate")
        .add("weight_decay", number(value.weight_decay, from(0).to(1000)),
             "how strongly weights are pulled to zero")
        .add("decay_norm_and_bias", flag(value.decay_norm_and_bias),
             "weight decay for norms and biases too")
        .add("lr_base_batch",
             optional(value.lr_base_batch,
                      [](std::int64_t& inner) { return integer(inner, from(1).to(1e9)); }),
             "lr is meant for this global batch, and scaled with the real one");
  });
}

TypePtr schedule(Schedule& value) {
  auto keys = object();
  keys->add("warmup",
            optional(value.warmup,
                     [](Duration& inner) {
                       return duration(inner, {Unit::kSteps, Unit::kEpochs}, true);
                     }),
            "how long the learning rate rises, in a straight line, to lr")
      .add("decay", component(value.decay, schedules()), "how it goes on from there")
      .set_short_for("decay");
  return keys;
}

TypePtr loss(Loss& value) {
  return component(value, losses(), [&value](Object& keys) {
    keys.add("label_smoothing", number(value.label_smoothing, from(0).below(1)),
             "share of the target that is spread over all classes");
  });
}

TypePtr clip(std::optional<Clip>& value) {
  return optional(value, [](Clip& inner) {
    auto keys = object();
    keys->require("norm", number(inner.norm, above(0).to(1e6)),
                  "largest L2 norm of all gradients as one vector");
    return keys;
  });
}

TypePtr mix(std::optional<Mix>& value) {
  return optional(value, [](Mix& inner) {
    auto keys = object();
    keys->add("mixup", number(inner.mixup, from(0).to(100)),
              "alpha of the Beta distribution that images are averaged by; 0: no mixup")
        .add("cutmix", number(inner.cutmix, from(0).to(100)),
             "alpha of the Beta distribution that boxes are exchanged by; 0: no cutmix")
        .add("probability", number(inner.probability, from(0).to(1)), "share of the pairs mixed")
        .add("cutmix_share", number(inner.cutmix_share, from(0).to(1)),
             "of them cutmix, where both are asked for");
    return keys;
  });
}

TypePtr checkpoint(Checkpoint& value) {
  auto keys = object();
  keys->add("every", duration(value.every, any_unit()), "how often one is written")
      .add("keep_last", integer(value.keep_last, from(1).to(kMostCount)),
           "so many of the newest are kept")
      .add("keep_best", integer(value.keep_best, from(0).to(kMostCount)),
           "so many of those that were the best by validation accuracy when they were saved are "
           "kept")
      .reserve({"best", "mirror"});
  return keys;
}

TypePtr storage(Storage& value) {
  auto keys = object();
  keys->add("endpoint", endpoint(value.endpoint),
            "server of s3:// paths; without it that of AWS_ENDPOINT_URL or the profile, then "
            "Amazon's")
      .add("region", region(value.region),
           "without it that of AWS_REGION or the profile, then us-east-1")
      .add(
          "addressing", choice(value.addressing, {"auto", "path", "virtual"}),
          "whether the bucket stands in the path or in the host's name; auto: in the path where an "
          "endpoint is named")
      .add("connect_timeout_s", number(value.connect_timeout_s, from(0.01).to(3600)),
           "for one connection")
      .add("stall_timeout_s", number(value.stall_timeout_s, from(1).to(3600)),
           "how long a transfer may stay below 4 KiB/s")
      .add("give_up_after_s", number(value.give_up_after_s, from(0).to(86400)),
           "for how long a request that fails is tried again");
  return keys;
}

TypePtr every(Duration& value, const std::string& help) {
  auto keys = object();
  keys->add("every", duration(value, any_unit()), help);
  return keys;
}

}  // namespace

Recipe blank_recipe() {
  Recipe recipe;
  choose(recipe.precision, *precisions().find("fp32"));
  choose(recipe.loss, *losses().find("cross_entropy"));
  choose(recipe.schedule.decay, *schedules().find("constant"));
  return recipe;
}

std::unique_ptr<Object> describe(Recipe& recipe) {
  auto keys = object();
  keys->add("$schema", ignored_text("an address"), "for editors; not read")
      .add("version", fixed_integer(1), "version of the recipe format")
      .add("extends", ignored_text("a path relative to this file"),
           "a recipe that this one changes, merged as RFC 7396 says: null removes a key")
      .add("name", run_name(recipe.name), "name of the run; without it the file's name")
      .add("seed", integer(recipe.seed, from(0).to(9007199254740991.0)),
           "start of everything random")
      .require("model", model(recipe.model), "what is trained")
      .require("data", data(recipe.data), "what it is trained on")
      .add("batch", batch(recipe.batch), "how many samples at a time");
  add_units(*keys, recipe.length, {Unit::kEpochs, Unit::kSteps}, false, "length of training");
  keys->add("precision", component(recipe.precision, precisions()),
            "in which numbers the model computes")
      .require("optimizer", optimizer(recipe.optimizer), "how the weights are changed")
      .add("schedule", schedule(recipe.schedule), "how the learning rate changes")
      .add("loss", loss(recipe.loss), "what is made small")
      .add("mix", mix(recipe.mix), "mixes neighbours of a training batch, images and targets")
      .add("clip", clip(recipe.clip), "limits the gradients; without it they are not limited")
      .add("validate", every(recipe.validate_every, "how often data.val is looked at"),
           "looking at data.val")
      .add("checkpoint", checkpoint(recipe.checkpoint), "what is kept for a resume")
      .add("storage", storage(recipe.storage), "how remote data is reached")
      .add("log", every(recipe.log_every, "how often a line of metrics is written"), "metrics")
      .add("threads", integer(recipe.threads, from(0).to(4096)),
           "computing threads of a rank; 0: cores over ranks of the node")
      .add("deterministic", flag(recipe.deterministic),
           "the same bits in every run on a GPU too, at some cost of speed; an operation that "
           "cannot "
           "ends the run")
      .add("device", choice(recipe.device, {"auto", "cpu", "cuda"}), "where to compute")
      .add("output", path(recipe.output), "the run's folder; without it runs/NAME")
      .reserve({"ema", "parallel", "safety", "profile"});
  return keys;
}

}  // namespace scaletrain::recipe
