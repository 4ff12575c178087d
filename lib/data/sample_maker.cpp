#include "lib/data/sample_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "lib/core/error.h"

namespace scaletrain::data {

SampleMaker::SampleMaker(const SampleSource& source) : source_(source) {
  work_.image_size = source.image_size;
}

SampleMaker::Result SampleMaker::make(std::int64_t epoch, std::int64_t position,
                                      std::span<std::uint8_t> pixels) {
  const SamplePlace place = source_.place(epoch, position);
  const RawSample raw = source_.dataset->read(place.shard, place.sample);
  if (raw.label >= source_.num_classes) {
    throw core::DataError(
        source_.dataset->label_place(place.shard, raw),
        fmt::format("label {} is not in 0..{}", raw.label, source_.num_classes - 1),
        "correct the label, or set /model/num_classes");
  }
  try {
    decoder_.decode(raw.image, work_.image);
  } catch (const std::invalid_argument& error) {
    throw core::DataError(source_.dataset->image_place(place.shard, raw),
                          fmt::format("the image does not decode: {}", error.what()),
                          "replace the image or leave the sample out");
  }
  core::Philox draws(source_.seed, core::DrawPurpose::kAugment, static_cast<std::uint64_t>(epoch),
                     static_cast<std::uint64_t>(position));
  apply_transforms(source_.transforms, work_, draws);
  std::copy(work_.image.pixels.begin(), work_.image.pixels.end(), pixels.begin());
  return {raw.label, sample_digest(epoch, position, raw)};
}

}  // namespace scaletrain::data
