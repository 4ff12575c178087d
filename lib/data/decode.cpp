#include "lib/data/decode.h"

#include <fmt/format.h>
#include <turbojpeg.h>

#include <cstring>
#include <new>
#include <stdexcept>

#include "lib/format/rgb8.h"

namespace scaletrain::data {

// JPEG through libjpeg-turbo.
class Decoder::Jpeg {
 public:
  Jpeg() : handle_(tjInitDecompress()) {
    if (handle_ == nullptr) throw std::bad_alloc();
  }
  ~Jpeg() { tjDestroy(handle_); }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  void decode(std::string_view file, Image& image) {
    const auto* const data = reinterpret_cast<const unsigned char*>(file.data());
    int width = 0, height = 0, subsampling = 0, colours = 0;
    check(tjDecompressHeader3(handle_, data, file.size(), &width, &height, &subsampling, &colours));
    check_pixels(width, height);
    image.reshape(width, height);
    if (colours != TJCS_CMYK && colours != TJCS_YCCK) {
      check(tjDecompress2(handle_, data, file.size(), image.pixels.data(), width, 0, height,
                          TJPF_RGB, TJFLAG_STOPONWARNING));
      return;
    }
    cmyk_.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 4);
    check(tjDecompress2(handle_, data, file.size(), cmyk_.data(), width, 0, height, TJPF_CMYK,
                        TJFLAG_STOPONWARNING));
    // Adobe's convention, which everything that writes CMYK follows: 255 is no ink.
    for (std::size_t i = 0, o = 0; o < image.pixels.size(); i += 4, o += kChannels) {
      for (std::size_t c = 0; c < kChannels; ++c) {
        image.pixels[o + c] =
            static_cast<std::uint8_t>((unsigned{cmyk_[i + c]} * cmyk_[i + 3] + 127) / 255);
      }
    }
  }

 private:
  // After a failure the library's handle may go on in the middle of the failed file (2.1.5 then
  // reports an image of 0 x 0 as sound), so a fresh one is taken.
  void check(int result) {
    if (result == 0) return;
    const std::string message = tjGetErrorStr2(handle_);
    tjDestroy(handle_);
    handle_ = tjInitDecompress();
    if (handle_ == nullptr) throw std::bad_alloc();
    throw std::invalid_argument(message);
  }

  tjhandle handle_;
  std::vector<std::uint8_t> cmyk_;
};

Decoder::Decoder() : jpeg_(std::make_unique<Jpeg>()) {}
Decoder::~Decoder() = default;

void Decoder::decode(std::string_view file, Image& image) {
  if (file.starts_with("\x89PNG\r\n\x1a\n")) {
    decode_png(file, image);
  } else if (file.starts_with("\xff\xd8\xff")) {
    jpeg_->decode(file, image);
  } else if (file.starts_with(format::kRgb8Magic)) {
    const format::Rgb8Size size = format::parse_rgb8(file);
    check_pixels(size.width, size.height);
    image.reshape(size.width, size.height);
    std::memcpy(image.pixels.data(), file.data() + format::kRgb8HeaderBytes, image.pixels.size());
  } else {
    throw std::invalid_argument("its first bytes are neither PNG nor JPEG");
  }
}

void check_pixels(std::int64_t width, std::int64_t height) {
  if (width * height > kMaxPixels) {
    throw std::invalid_argument(
        fmt::format("{} x {} pixels are more than {} in all", width, height, kMaxPixels));
  }
}

}  // namespace scaletrain::data
