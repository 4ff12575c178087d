#include "app/data/import/import_sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "app/data/files/image_kind.h"
#include "app/data/files/in_order.h"
#include "app/data/files/pack_sources.h"
#include "app/data/import/import_fields.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/placeholder.h"
#include "lib/data/image/encode.h"
#include "lib/format/tar/tar.h"
#include "lib/storage/unpacked_file.h"

namespace scaletrain::app {
namespace {

// Reads an IDX file of unsigned bytes, plain or compressed, item by item: memory does not depend on
// the sizes in its header.
class IdxFile {
 public:
  IdxFile(const std::string& path, std::size_t fewest_sides, std::size_t most_sides)
      : path_(path),
        packed_(storage::file_storage().stream(path)),
        bytes_(storage::unpack(*packed_, path,
                               {storage::kMaxUnpackedBytes, "import such a file in parts"},
                               storage::Packing::kAnyOrNone)) {
    std::string magic(4, '\0');
    if (!fill(magic) || byte_at(magic, 0) != 0 || byte_at(magic, 1) != 0 ||
        byte_at(magic, 2) != 8) {
      refuse("is not an IDX file of unsigned bytes");
    }
    const std::size_t sides = byte_at(magic, 3);
    std::string header(4 * sides, '\0');
    if (sides < fewest_sides || sides > most_sides || !fill(header)) {
      refuse(fmt::format("has {} dimensions", sides));
    }
    std::int64_t item_bytes = 1;
    for (std::size_t i = 0; i < sides; ++i) {
      std::int64_t side = 0;
      for (std::size_t k = 0; k < 4; ++k) side = side << 8 | byte_at(header, 4 * i + k);
      sides_.push_back(side);
      if (i > 0) item_bytes = std::min(item_bytes * side, format::kMaxMemberBytes + 1);
    }
    if (item_bytes == 0 || item_bytes > format::kMaxMemberBytes) {
      refuse(
          fmt::format("has items of {} bytes", fmt::join(sides_.begin() + 1, sides_.end(), "x")));
    }
    item_.resize(static_cast<std::size_t>(item_bytes));
  }

  const std::vector<std::int64_t>& sides() const { return sides_; }

  // The next of sides()[0] items; valid until the next call.
  const std::string& next() {
    if (!fill(item_)) refuse(fmt::format("ends in item {} of {}", number_, sides_[0]));
    ++number_;
    return item_;
  }

  void expect_end() {
    std::string more(1, '\0');
    if (fill(more)) refuse(fmt::format("has data after its {} items", sides_[0]));
  }

 private:
  static unsigned char byte_at(const std::string& bytes, std::size_t i) {
    return static_cast<unsigned char>(bytes[i]);
  }

  // False if the file ends before.
  bool fill(std::string& out) {
    const std::span<std::byte> wanted = std::as_writable_bytes(std::span(out));
    for (std::size_t done = 0; done < wanted.size();) {
      const std::size_t got = bytes_->read(wanted.subspan(done));
      if (got == 0) return false;
      done += got;
    }
    return true;
  }

  [[noreturn]] void refuse(const std::string& found) const {
    core::refuse_placeholder_file(path_);
    throw core::DataError(path_, found, "name an IDX file of unsigned bytes, as MNIST's");
  }

  const std::string& path_;
  std::unique_ptr<storage::Stream> packed_, bytes_;
  std::vector<std::int64_t> sides_;
  std::string item_;
  std::int64_t number_ = 0;
};

ImportedSample read_item(const PackItem& item) {
  std::string image = core::read_file(item.path, format::kMaxMemberBytes, core::ExitCode::kData);
  const std::string kind = take_image(image, item.path);
  if (kind.empty()) {
    core::refuse_placeholder(item.path, image);
    throw core::DataError(item.path, "its first bytes match no image format",
                          "scaletrain data pack --skip-bad skips such files");
  }
  return {item.key, {{kind, std::move(image)}, {"cls", item.label}}};
}

}  // namespace

std::unique_ptr<storage::Object> open_source(const std::string& path,
                                             const storage::Storage& files) {
  return storage::is_packed(*files.stream(path), path)
             ? storage::open_unpacked(files, path, storage::Packing::kAnyOrNone)
             : files.open(path);
}

std::string key_stem(const std::string& path) {
  std::string stem = std::filesystem::path(path).filename().string();
  for (char& c : stem) c = c == '.' ? '_' : c;
  return stem;
}

ImportedSet import_folder(const std::string& path, int threads, const UseSample& use) {
  PackSource source = read_pack_source(path, {});
  in_order<ImportedSample>(
      std::ssize(source.items), threads,
      [&](std::int64_t i, int) { return read_item(source.items[static_cast<std::size_t>(i)]); },
      [&](std::int64_t, ImportedSample sample) { use(std::move(sample)); });
  return {std::move(source.classes), std::move(source.left_alone)};
}

void import_idx(const std::string& images, const std::string& labels, std::int64_t first_class,
                const UseSample& use) {
  IdxFile pixels(images, 3, 4), numbers(labels, 1, 1);
  const std::vector<std::int64_t>& sides = pixels.sides();
  const bool colours = sides.size() == 4;
  if (sides[0] != numbers.sides()[0] || (colours && sides[3] != 3)) {
    throw core::DataError(
        images, fmt::format("{} images and {} labels", sides[0], numbers.sides()[0]),
        "name the two files of one set, [count, height, width] or with 3 colours");
  }
  data::Image image;
  image.reshape(sides[2], sides[1]);
  const std::size_t repeat = colours ? 1 : 3;  // a grey value is red, green and blue
  for (std::int64_t i = 0; i < sides[0]; ++i) {
    const std::string& values = pixels.next();
    for (std::size_t k = 0; k < image.pixels.size(); ++k) {
      image.pixels[k] = static_cast<std::uint8_t>(values[k / repeat]);
    }
    const auto stored = static_cast<unsigned char>(numbers.next()[0]);
    const auto label = class_number(stored, first_class);
    if (!label) {
      throw core::DataError(
          fmt::format("{}: item {}", labels, i),
          fmt::format("its label is not a class: {}", stored),
          fmt::format("--first-class, {} here, is the lowest label", first_class));
    }
    use({fmt::format("{:08}", i), {{"png", data::to_png(image)}, {"cls", std::to_string(*label)}}});
  }
  pixels.expect_end();
  numbers.expect_end();
}

}  // namespace scaletrain::app
