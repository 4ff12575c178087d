#include "lib/format/tar_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_set>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/hash.h"

namespace scaletrain::format {
namespace {

constexpr std::int64_t kMaxLabelBytes = 32;
constexpr const char* kLayout =
    "a sample is one image (.png, .jpg or .jpeg) and one label (.cls) with the same name, next to "
    "one another";

std::string sample_place(const std::string& name, const std::string& key) {
  return fmt::format("{}: {}", name, shown_name(key));
}

// A whole number in ASCII; white space around it is allowed, as a file written by `echo` has it.
std::int64_t parse_label(const std::string& place, std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::string_view digits = text;
  digits.remove_prefix(std::min(digits.find_first_not_of(kSpace), digits.size()));
  digits = digits.substr(0, digits.find_last_not_of(kSpace) + 1);
  std::int32_t label = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), label);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || label < 0) {
    throw core::DataError(place,
                          fmt::format("label \"{}\" is not a class number", shown_name(text)),
                          fmt::format("a label is a whole number from 0 to {} in text",
                                      std::numeric_limits<std::int32_t>::max()));
  }
  return label;
}

// Puts the members of one key together, and remembers which keys were there.
class Grouping {
 public:
  Grouping(const std::string& name, const ReadAt& read,
           const std::function<void(const TarSample&)>& use)
      : name_(name), read_(read), use_(use) {}

  void add(TarMember member) {
    auto parts = split_sample_name(member.path);
    if (!member.regular || !parts) return;
    if (extensions_.empty() || parts->key != sample_.key) start(std::move(parts->key));
    const std::string& extension = parts->extension;
    if (std::find(extensions_.begin(), extensions_.end(), extension) != extensions_.end()) {
      throw core::DataError(fmt::format("{}: {}", name_, shown_name(member.path)), "is there twice",
                            "names in a shard must differ: write it again");
    }
    extensions_.push_back(extension);
    if (extension == "cls") {
      sample_.label = read_label(member);
      has_label_ = true;
    } else if (is_image_extension(extension)) {
      if (has_image_) {
        throw core::DataError(sample_place(name_, sample_.key), "has two images", kLayout);
      }
      sample_.image = std::move(member);
      has_image_ = true;
    }
  }

  // Throws for the first incomplete sample. It is kept until here, since a key that is used again
  // says better what is wrong with a tar that is sorted by extension.
  void finish() {
    end_sample();
    if (incomplete_) throw core::DataError(*incomplete_);
  }

 private:
  void start(std::string key) {
    end_sample();
    if (!keys_.insert(core::xxh3_64(key)).second) {
      throw core::DataError(sample_place(name_, key), "the key is used again after another sample",
                            kLayout);
    }
    sample_ = TarSample();
    sample_.key = std::move(key);
    extensions_.clear();
    has_image_ = has_label_ = false;
  }

  void end_sample() {
    if (extensions_.empty()) return;
    if (has_image_ && has_label_) {
      use_(sample_);
    } else if (!incomplete_) {
      incomplete_.emplace(sample_place(name_, sample_.key),
                          has_label_   ? "has no image"
                          : has_image_ ? "has no label"
                                       : "has no image and no label",
                          kLayout);
    }
  }

  std::int64_t read_label(const TarMember& member) const {
    const std::string place = fmt::format("{}: {}", name_, shown_name(member.path));
    if (member.bytes > kMaxLabelBytes) {
      throw core::DataError(place, fmt::format("a label of {} bytes", member.bytes),
                            fmt::format("a label is a number of at most {} bytes", kMaxLabelBytes));
    }
    std::string text(static_cast<std::size_t>(member.bytes), '\0');
    read_(member.data, std::as_writable_bytes(std::span(text)));
    return parse_label(place, text);
  }

  const std::string& name_;
  const ReadAt& read_;
  const std::function<void(const TarSample&)>& use_;
  TarSample sample_;
  std::vector<std::string> extensions_;  // of the sample so far; empty before the first
  bool has_image_ = false, has_label_ = false;
  std::unordered_set<std::uint64_t> keys_;  // by hash, so that a million keys take 16 MB at most
  std::optional<core::DataError> incomplete_;
};

}  // namespace

std::optional<SampleName> split_sample_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos || dot == base) return std::nullopt;
  SampleName name{std::string(path.substr(0, dot)), std::string(path.substr(dot + 1))};
  for (char& c : name.extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

bool is_image_extension(std::string_view extension) {
  return extension == "png" || extension == "jpg" || extension == "jpeg";
}

void for_each_sample(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
                     const std::function<void(const TarSample&)>& use) {
  TarReader reader(name, file_bytes, read);
  Grouping grouping(name, read, use);
  while (auto member = reader.next()) grouping.add(std::move(*member));
  grouping.finish();
}

}  // namespace scaletrain::format
