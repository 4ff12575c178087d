// Any bytes as a BMP, GIF or TIFF: a picture within the limit, or one error.
#include <stdexcept>
#include <string_view>

#include "app/foreign/foreign_image.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kMostPixels = 1 << 16;

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// A picture of 5 x 3 pixels and four colours, as Pillow writes it.
constexpr const char* kGif =
    "47494638376105000300810000dad85876df6b8f77899e2abe2c00000000050003000008110001041030000080"
    "020808102070808101003b";

// One of 5 x 3 pixels, compressed by LZW and by PackBits.
constexpr const char* kLzwTiff =
    "49492a003e000000803fdc8223cbcd7a0641999505260aed2c5179b3430ec043d948e712348deac692b960da79"
    "2a4e4cd1fa805ed427920e0786f11602000a000001030001000000050000000101030001000000030000000201"
    "030003000000bc0000000301030001000000050000000601030001000000020000001101040001000000080000"
    "001501030001000000030000001601030001000000030000001701040001000000350000001c01030001000000"
    "0100000000000000080008000800";
constexpr const char* kPackBitsTiff =
    "49492a00380000000effe42279f3bd068366a852c1bb96510ef3cd18ec08f6a4e724d26facd2aeb00edaf2a972"
    "cd3fa02fd44f487078de450a000001030001000000050000000101030001000000030000000201030003000000"
    "b60000000301030001000000058000000601030001000000020000001101040001000000080000001501030001"
    "000000030000001601030001000000030000001701040001000000300000001c01030001000000010000000000"
    "0000080008000800";

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    text += static_cast<char>(value);
    value >>= 8;
  }
  return text;
}

// A BMP of width x height with a header of 40 bytes and `behind` it.
std::string bmp(int width, int height, int bits, int compression, int colours,
                const std::string& behind) {
  return "BM" + number(54 + behind.size(), 4) + number(0, 4) +
         number(54 + 4U * static_cast<unsigned>(colours), 4) + number(40, 4) +
         number(static_cast<std::uint32_t>(width), 4) +
         number(static_cast<std::uint32_t>(height), 4) + number(1, 2) +
         number(static_cast<std::uint64_t>(bits), 2) +
         number(static_cast<std::uint64_t>(compression), 4) + number(0, 12) +
         number(static_cast<std::uint64_t>(colours), 4) + number(0, 4) + behind;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  data::Image image;
  try {
    app::decode_foreign({reinterpret_cast<const char*>(data), size}, image, kMostPixels);
  } catch (const std::invalid_argument&) {
    return 0;
  }
  if (image.width < 1 || image.height < 1 || image.width * image.height > kMostPixels ||
      image.pixels.size() != static_cast<std::size_t>(3 * image.width * image.height)) {
    fuzz_failed("a picture of another size than it says");
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string colours(16, '\x40');
  return {bytes_of(kGif),
          bytes_of(kLzwTiff),
          bytes_of(kPackBitsTiff),
          bmp(3, 2, 24, 0, 0, std::string(24, 'x')),
          bmp(3, -2, 16, 3, 0, number(0xf800, 4) + number(0x7e0, 4) + number(0x1f, 4) + colours),
          bmp(9, 2, 4, 0, 4, colours + std::string(16, '\x12')),
          bmp(6, 3, 8, 1, 4, colours + std::string("\3\1\0\3\2\3\1\0\0\0\6\2\0\2\1\1\0\1", 18)),
          bmp(6, 2, 4, 2, 4, colours + std::string("\3\x12\0\3\x23\x10\0\0\6\x31\0\1", 12))};
}
