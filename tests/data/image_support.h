// Encoded images and small shards for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/philox.h"
#include "lib/data/augment/transform.h"
#include "lib/data/image/image.h"
#include "lib/data/image/view.h"
#include "lib/recipe/catalog/values.h"
#include "tests/format/tar/tar_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::data {

using format::message_of;
using format::tar_end;
using format::tar_member;
using test::TemporaryFolder;

// Of a PNG or JPEG to encode: rows of `channels` values.
struct Pixels {
  std::int64_t width = 0, height = 0, channels = 0;
  std::vector<std::uint8_t> values = {};
};

// 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA; `depth` 16 repeats each byte. 4 channels in a JPEG:
// CMYK.
std::string encode_png(const Pixels& pixels, int depth = 8, bool interlaced = false);
std::string encode_jpeg(const Pixels& pixels, int quality = 100, int subsampling = 0,
                        bool progressive = false,  // TurboJPEG's numbers; grey is grey
                        int restart = 0);          // MCUs between restart markers; 0: none

// A grey PNG of width x height, all `value`.
std::string grey_png(std::uint8_t value, std::int64_t width = 4, std::int64_t height = 4);

// A shard of `count` grey 4x4 images "00000.png" on, with value (first + i) % 256 and label i % 10.
std::string grey_shard(int first, int count);

// An Image with value f(x, y, channel).
template <class F>
Image make_image(std::int64_t width, std::int64_t height, const F& f) {
  Image image;
  image.reshape(width, height);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t i = 0; i < width * kChannels; ++i) {
      image.row(y)[i] = static_cast<std::uint8_t>(f(i / kChannels, y, i % kChannels));
    }
  }
  return image;
}

// What `transforms` make of the decoded `image`.
Image transformed(const Transforms& transforms, const Image& image, std::int64_t image_size,
                  core::Philox& draws);

// The same with the chance of a position (seed 1, epoch 0).
Image transformed(const Transforms& transforms, const Image& image, std::int64_t image_size,
                  std::uint64_t position);

Image resize(const Image& image, const View& view);

recipe::Component component(const std::string& name,
                            const std::map<std::string, recipe::Component::Value>& options = {});

}  // namespace scaletrain::data
