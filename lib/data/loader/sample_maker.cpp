#include "lib/data/loader/sample_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/data/loader/bad_sample.h"
#include "lib/data/loader/image_batch.h"

namespace scaletrain::data {
namespace {

constexpr int kMaxAttempts = 100;  // samples tried at one position

}  // namespace

SampleMaker::SampleMaker(const SampleSource& source) : source_(source), decoder_(source.decode) {}

Made SampleMaker::make(std::int64_t epoch, std::int64_t position, const Row& row) {
  Made made;
  core::Philox draws(source_.seed, core::DrawPurpose::kReplacement,
                     static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(position));
  SamplePlace place = source_.place(epoch, position);
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    try {
      make_at(place, epoch, position, row, made);
      return made;
    } catch (const BadSampleError& error) {
      if (!source_.skip_bad) throw;
      made.skipped.push_back(error.sample());
    }
    if (!source_.replacement) {
      made.present = false;
      return made;
    }
    place = source_.replacement(epoch, position, draws);
  }
  throw core::DataError(made.skipped.back().place,
                        fmt::format("{}, as {} other samples drawn in its place",
                                    made.skipped.back().reason, kMaxAttempts - 1),
                        "check the shards: scaletrain data check");
}

void SampleMaker::make_at(SamplePlace place, std::int64_t epoch, std::int64_t position,
                          const Row& row, Made& made) {
  core::SteadyTime start = core::now();
  const auto end_stage = [&start](double& stage_s) {
    const core::SteadyTime end = core::now();
    stage_s += std::chrono::duration<double>(end - start).count();
    start = end;
  };
  source_.dataset->read_into(place.shard, place.sample, raw_);
  const RawSample& raw = raw_;
  end_stage(made.stages.read_s);
  write_label(place, row);
  core::Philox draws(source_.seed, core::DrawPurpose::kAugment, static_cast<std::uint64_t>(epoch),
                     static_cast<std::uint64_t>(position));
  try {
    decoder_.decode_view(
        raw.image,
        [&](std::int64_t width, std::int64_t height) {
          return source_.transforms.view(width, height, source_.size_at(epoch, position), draws);
        },
        work_.image);
  } catch (const std::invalid_argument& error) {
    BadSample sample{source_.dataset->image_place(place.shard, raw),
                     fmt::format("the image does not decode: {}", error.what()),
                     raw.shard,
                     raw.key,
                     epoch,
                     position};
    const bool is_strict = !source_.skip_bad && !source_.decode.lenient_jpeg;
    throw BadSampleError(std::move(sample),
                         is_strict && decodes_leniently(raw.image, source_.decode));
  }
  if (!decoder_.warning().empty() && source_.jpeg_warnings) {
    source_.jpeg_warnings->add(source_.dataset->image_place(place.shard, raw), decoder_.warning());
  }
  end_stage(made.stages.decode_s);
  source_.transforms.apply(work_, draws);
  std::copy(work_.image.pixels.begin(), work_.image.pixels.end(),
            row.values<std::uint8_t>(kPixels).begin());
  end_stage(made.stages.augment_s);
  made.digest = sample_digest(epoch, position, raw);
}

void SampleMaker::write_label(SamplePlace place, const Row& row) const {
  const auto refuse_if = [&](const std::optional<LabelProblem>& problem) {
    if (!problem) return;
    throw core::DataError(source_.dataset->label_place(place.shard, raw_), problem->found,
                          problem->remedy);
  };
  const bool has_list = raw_.label < 0;
  if (source_.multi_label) {
    // A single class number is read as one, whatever the format of lists.
    const ListFormat format = has_list ? source_.list_format : ListFormat::kClassNumbers;
    refuse_if(set_class_flags(has_list ? std::span(raw_.labels) : std::span(&raw_.label, 1), format,
                              row.values<std::uint8_t>(kLabels)));
    return;
  }
  if (has_list) {
    refuse_if(LabelProblem{
        fmt::format("is a list of {} classes", raw_.labels.size()),
        R"(add "task": "multi_label_classification" to the recipe, or correct the label)"});
  }
  refuse_if(check_label(raw_.label, source_.num_classes));
  row.values<std::int64_t>(kLabels)[0] = raw_.label;
}

}  // namespace scaletrain::data
