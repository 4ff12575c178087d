#include "lib/data/loader/image_stream.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lib/data/loader/image_sizes.h"
#include "lib/data/loader/make_order.h"
#include "lib/data/loader/read_ahead.h"
#include "lib/data/loader/sample_maker.h"
#include "lib/data/loader/upcoming_shards.h"
#include "lib/data/order/order.h"
#include "lib/data/order/shard_offsets.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/sections/batch.h"

namespace scaletrain::data {
namespace {

SampleSource make_source(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options) {
  SampleSource source;
  source.dataset = std::move(dataset);
  source.skip_bad = options.skip_bad;
  source.size_at = [size = options.image_size](std::int64_t /*epoch*/, std::int64_t /*position*/) {
    return size;
  };
  source.num_classes = options.num_classes;
  source.multi_label = options.multi_label;
  source.list_format = options.list_format;
  source.seed = options.seed;
  source.decode = options.decode;
  if (options.decode.lenient_jpeg) source.jpeg_warnings = std::make_shared<JpegWarnings>();
  return source;
}

ListFormat list_format_of(const recipe::Data& data) {
  if (data.label_format == "multi_hot") return ListFormat::kMultiHot;
  return data.label_format == "class_numbers" ? ListFormat::kClassNumbers : ListFormat::kAuto;
}

Transforms eval_transforms(const LoaderOptions& options) {
  recipe::Component crop;
  choose(crop, *recipe::transforms().find("center_crop"));
  crop.options["resize"] = options.eval_resize;
  crop.options["filter"] = options.eval_filter;
  return make_transforms({crop});
}

// State that the stream's threads share.
struct Images {
  Images(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
      : source(make_source(std::move(dataset), options)) {}

  SampleSource source;
  std::optional<UpcomingShards> upcoming;  // streamed order only
};

std::unique_ptr<BatchStream> read_images(const std::shared_ptr<Images>& images,
                                         ReadAhead::JobOf job_of, const LoaderOptions& options,
                                         core::BufferPool& pool, const ReaderSlice& slice,
                                         std::shared_ptr<const core::StepPlan> plan) {
  const ReadAheadSize start{.threads = std::max(options.threads, 1), .prefetch = options.prefetch};
  std::optional<ThreadSearch> search;
  if (options.search_threads && plan != nullptr) search.emplace(start);
  std::vector<std::unique_ptr<Maker>> makers;
  for (int i = 0; i < (search ? search->most().threads : start.threads); ++i) {
    makers.push_back(std::make_unique<SampleMaker>(images->source));
  }
  const Column labels = options.multi_label ? Column{Element::kUint8, options.num_classes}
                                            : Column{Element::kInt64, 1};
  auto layout_of = [labels, source = &images->source](const BatchJob& job) {
    const std::int64_t size = source->size_at(job.epoch, job.position);
    std::vector<Column> layout(2);
    layout[kPixels] = {Element::kUint8, size * size * kChannels};
    layout[kLabels] = labels;
    return layout;
  };
  return std::make_unique<ReadAheadStream>(
      images,
      std::make_unique<ReadAhead>(std::move(makers), std::move(layout_of), std::move(job_of),
                                  options.prefetch, pool, search),
      slice, std::move(plan),
      [source = &images->source](std::int64_t epoch, std::int64_t position) {
        const SamplePlace place = source->place(epoch, position);
        const RawSample sample = source->dataset->read(place.shard, place.sample);
        return sample.shard + "/" + sample.key;
      });
}

std::shared_ptr<const Order> make_train_order(const std::shared_ptr<const Dataset>& dataset,
                                              const LoaderOptions& options,
                                              const ReaderSlice& slice,
                                              const std::shared_ptr<const core::StepPlan>& plan) {
  if (options.streamed) recipe::check_lanes(options.lanes, slice.readers);
  return make_order(dataset, {.seed = options.seed,
                              .shuffle_shards = options.shuffle_shards,
                              .samples_per_epoch = options.samples_per_epoch,
                              .repeats = options.repeats,
                              .streamed = options.streamed,
                              .lanes = options.lanes,
                              .block = slice.per_device,
                              .global_batch = slice.ramp ? recipe::part_of_all(*slice.ramp)
                                                         : slice.global_batch(),
                              .growing = slice.ramp ? plan : nullptr});
}

}  // namespace

LoaderOptions loader_options(const recipe::Data& data) {
  return {.image_size = data.image_size,
          .resize_ramp = data.resize_ramp,
          .list_format = list_format_of(data),
          .threads = static_cast<int>(data.threads),
          .search_threads = data.search_threads,
          .prefetch = static_cast<int>(data.prefetch),
          .shuffle_shards = data.shuffle_shards,
          .streamed = data.order == "streamed",
          .lanes = data.lanes,
          .samples_per_epoch = data.samples_per_epoch,
          .skip_bad = data.bad_samples.policy == "skip",
          .augment = data.train.augment,
          .repeats = data.train.repeats,
          .eval_resize = data.eval_resize,
          .eval_filter = data.eval_filter,
          .normalize = data.normalize,
          .decode = {.exif_orientation = data.exif_orientation,
                     .lenient_jpeg = data.jpeg == "lenient",
                     .max_pixels = data.max_pixels}};
}

std::unique_ptr<BatchStream> train_images(std::shared_ptr<const Dataset> dataset,
                                          const LoaderOptions& options, ReaderSlice slice,
                                          core::BufferPool& pool) {
  const std::shared_ptr<const core::StepPlan> plan = plan_steps(
      slice, options.samples_per_epoch > 0 ? options.samples_per_epoch : dataset->size());
  const auto images = std::make_shared<Images>(std::move(dataset), options);
  SampleSource& source = images->source;
  const std::shared_ptr<const Order> order = make_train_order(source.dataset, options, slice, plan);
  source.transforms = make_transforms(options.augment, options.normalize);
  source.place = [order](std::int64_t epoch, std::int64_t position) {
    return order->at(epoch, position);
  };
  source.replacement = [order](std::int64_t epoch, std::int64_t position, core::Philox& draws) {
    return order->replacement(epoch, position, draws);
  };
  if (options.resize_ramp) {
    const ImageSizes sizes =
        plan_image_sizes(options.image_size, options.resize_ramp, plan->steps_per_epoch());
    source.size_at = [sizes, plan](std::int64_t epoch, std::int64_t position) {
      return sizes.at(plan->spread(plan->step_of(epoch, position)));
    };
  }
  if (auto streamed = std::dynamic_pointer_cast<const StreamedOrder>(order)) {
    images->upcoming.emplace(source.dataset, std::move(streamed), slice);
  }
  auto job_of = [shared = images.get(), slice, plan](std::int64_t number) {
    const BatchJob planned = train_job(slice, *plan, number);
    if (shared->upcoming) shared->upcoming->plan(number, planned);
    return planned;
  };
  return read_images(images, std::move(job_of), options, pool, slice, plan);
}

std::unique_ptr<BatchStream> eval_images(std::shared_ptr<const Dataset> dataset,
                                         const LoaderOptions& options, ReaderSlice slice,
                                         core::BufferPool& pool) {
  const std::int64_t size = dataset->size();
  const auto images = std::make_shared<Images>(std::move(dataset), options);
  SampleSource& source = images->source;
  source.transforms = eval_transforms(options);
  const auto offsets = std::make_shared<ShardOffsets>(shard_sizes(*source.dataset));
  source.place = [offsets](std::int64_t /*epoch*/, std::int64_t position) {
    return offsets->locate(position);
  };
  auto job_of = [slice, size](std::int64_t number) { return eval_job(slice, size, number); };
  return read_images(images, std::move(job_of), options, pool, slice, nullptr);
}

}  // namespace scaletrain::data
