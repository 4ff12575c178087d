#include "tests/data/image_support.h"

#include <png.h>
#include <turbojpeg.h>

#include <cstdlib>
#include <stdexcept>

#include "lib/data/image/resize.h"

namespace scaletrain::data {

std::string encode_png(const Pixels& pixels, int depth, bool interlaced) {
  constexpr int kTypes[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGB_ALPHA};
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp writer, png_bytep data, png_size_t bytes) {
        static_cast<std::string*>(png_get_io_ptr(writer))
            ->append(reinterpret_cast<const char*>(data), bytes);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(pixels.width),
               static_cast<png_uint_32>(pixels.height), depth, kTypes[pixels.channels],
               interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  std::vector<std::uint8_t> bytes;
  for (const std::uint8_t value : pixels.values) {
    bytes.insert(bytes.end(), depth == 16 ? 2 : 1, value);
  }
  std::vector<png_bytep> rows;
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    rows.push_back(bytes.data() + y * pixels.width * pixels.channels * depth / 8);
  }
  png_set_rows(png, info, rows.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

std::string encode_jpeg(const Pixels& pixels, int quality, int subsampling, bool progressive,
                        int restart) {
  constexpr int kFormats[] = {0, TJPF_GRAY, 0, TJPF_RGB, TJPF_CMYK};
  ::setenv("TJ_RESTART", fmt::format("{}B", restart).c_str(), 1);  // TurboJPEG has no other way
  const tjhandle handle = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long bytes = 0;  // NOLINT(google-runtime-int): the library's
  const int result = tjCompress2(handle, pixels.values.data(), static_cast<int>(pixels.width), 0,
                                 static_cast<int>(pixels.height), kFormats[pixels.channels], &data,
                                 &bytes, pixels.channels == 1 ? TJSAMP_GRAY : subsampling, quality,
                                 progressive ? TJFLAG_PROGRESSIVE : 0);
  if (result != 0) throw std::runtime_error(tjGetErrorStr2(handle));
  std::string file(reinterpret_cast<const char*>(data), bytes);
  tjFree(data);
  tjDestroy(handle);
  return file;
}

std::string grey_png(std::uint8_t value, std::int64_t width, std::int64_t height) {
  return encode_png({width, height, 1,
                     std::vector<std::uint8_t>(static_cast<std::size_t>(width * height), value)});
}

std::string grey_shard(int first, int count) {
  std::string tar;
  for (int i = 0; i < count; ++i) {
    tar += tar_member(fmt::format("{:05d}.png", i), grey_png(static_cast<std::uint8_t>(first + i)));
    tar += tar_member(fmt::format("{:05d}.cls", i), std::to_string(i % 10));
  }
  return tar + tar_end();
}

Image transformed(const Transforms& transforms, const Image& image, std::int64_t image_size,
                  core::Philox& draws) {
  Workspace work;
  const View view = transforms.view(image.width, image.height, image_size, draws);
  Resizer().resize(image, view, work.image);
  transforms.apply(work, draws);
  return work.image;
}

Image transformed(const Transforms& transforms, const Image& image, std::int64_t image_size,
                  std::uint64_t position) {
  core::Philox draws(1, core::DrawPurpose::kAugment, 0, position);
  return transformed(transforms, image, image_size, draws);
}

Image resize(const Image& image, const View& view) {
  Image out;
  Resizer().resize(image, view, out);
  return out;
}

recipe::Component component(const std::string& name,
                            const std::map<std::string, recipe::Component::Value>& options) {
  recipe::Component result;
  result.name = name;
  result.options = options;
  return result;
}

}  // namespace scaletrain::data
