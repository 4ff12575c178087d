// The limit of loader_jpeg: libjpeg-turbo decoding the crops of RandomResizedCrop, one after
// another in one thread, and nothing else. scripts/bench/loader_jpeg.py.
//   jpeg_loop SECONDS SHARD...    images a second
#include <fmt/format.h>
#include <jpeglib.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/data/augment/transform.h"
#include "lib/data/order/order.h"
#include "lib/data/set/open_dataset.h"
#include "lib/recipe/catalog/lists.h"

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::int64_t kImageSize = 224;

struct Sample {
  std::string file;
  data::Box crop;
};

void open(jpeg_decompress_struct& info, const std::string& file) {
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
}

// The files, with the crops that the loader draws for the same positions.
std::vector<Sample> read_samples(const std::vector<std::string>& shards,
                                 jpeg_decompress_struct& info) {
  recipe::Source source;
  source.shards = shards;
  const auto dataset = data::open_dataset(source, "");
  const data::IndexedOrder order(0, data::shard_sizes(*dataset), 0);
  recipe::Component crop;
  choose(crop, *recipe::transforms().find("random_resized_crop"));
  const data::Transforms transforms = data::make_transforms({crop});
  std::vector<Sample> samples;
  for (std::int64_t i = 0; i < dataset->size(); ++i) {
    const data::SamplePlace place = order.at(0, i);
    Sample sample{dataset->read(place.shard, place.sample).image, {}};
    open(info, sample.file);
    core::Philox draws(0, core::DrawPurpose::kAugment, 0, static_cast<std::uint64_t>(i));
    sample.crop = transforms.view(info.image_width, info.image_height, kImageSize, draws).source;
    jpeg_abort_decompress(&info);
    samples.push_back(std::move(sample));
  }
  return samples;
}

void decode_crop(jpeg_decompress_struct& info, const Sample& sample,
                 std::vector<unsigned char>& pixels) {
  open(info, sample.file);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  auto left = static_cast<JDIMENSION>(sample.crop.x.begin);
  auto width = static_cast<JDIMENSION>(sample.crop.x.size);
  jpeg_crop_scanline(&info, &left, &width);
  jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(sample.crop.y.begin));
  const std::int64_t end = sample.crop.y.begin + sample.crop.y.size;
  pixels.resize(std::size_t{width} * 3 * static_cast<std::size_t>(sample.crop.y.size));
  unsigned char* row = pixels.data();
  while (info.output_scanline < end) {
    std::array<JSAMPROW, 1> rows{row};
    row += std::size_t{width} * 3 * jpeg_read_scanlines(&info, rows.data(), 1);
  }
  jpeg_abort_decompress(&info);
}

}  // namespace

int main(int count, char** values) {
  try {
    const std::vector<std::string> arguments(values + 1, values + count);
    const double seconds = std::stod(arguments.at(0));
    jpeg_decompress_struct info = {};
    jpeg_error_mgr errors = {};
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    const auto samples = read_samples({arguments.begin() + 1, arguments.end()}, info);
    std::vector<unsigned char> pixels;
    std::size_t images = 0;
    const core::SteadyTime start = core::now();
    while (core::seconds_since(start) < seconds) {
      decode_crop(info, samples[images++ % samples.size()], pixels);
    }
    fmt::print("{:.1f}\n", static_cast<double>(images) / core::seconds_since(start));
    jpeg_destroy_decompress(&info);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", core::describe(error));
    return static_cast<int>(core::exit_code_of(error));
  }
}
