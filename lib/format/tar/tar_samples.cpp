#include "lib/format/tar/tar_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/lookup.h"
#include "lib/core/text/placeholder.h"
#include "lib/format/json_fields.h"
#include "lib/format/key_set.h"
#include "lib/format/tar/class_names.h"
#include "lib/format/tar/tar_links.h"

namespace scaletrain::format {
namespace {

constexpr const char* kLayout =
    "a sample is one image (.jpg, .jpeg, .png, .webp or .rgb8) and one label (.cls) with the same "
    "name, next to one another";

std::string sample_place(const std::string& name, const std::string& key) {
  return fmt::format("{}: {}", name, shown_name(key));
}

struct NameParts {
  std::string_view key, extension;
};

std::optional<NameParts> sample_name_parts(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos || dot == base) return std::nullopt;
  return NameParts{path.substr(0, dot), path.substr(dot + 1)};
}

// Groups the members of one key.
class Grouping {
 public:
  // kRefuse rejects a repeated key at once, which needs a look-up in a large table for each key;
  // kHash only keeps the hashes.
  enum class Keys { kRefuse, kHash };

  Grouping(const std::string& name, TarReader& reader,
           const std::function<void(const TarSample&)>& use, std::span<const std::string> excluded,
           const LabelRule& rule, Keys keys)
      : name_(name), reader_(reader), use_(use), excluded_(excluded), rule_(rule), keys_(keys) {}

  // `parts` of its path. The member is in a moved-from state afterwards.
  void add(TarMember& member, NameParts parts) {
    if (!open_ || parts.key != sample_.key) start(parts.key);
    if (is_excluded_) return;
    std::string extension = core::lower_case(parts.extension);
    if (std::find(extensions_.begin(), extensions_.end(), extension) != extensions_.end()) {
      throw core::DataError(fmt::format("{}: {}", name_, shown_name(member.path)), "occurs twice",
                            "names in a shard must be unique: write the shard again");
    }
    if (extension == rule_.field && !rule_.of_folder()) {
      read_label(member);
      has_label_ = true;
    } else if (is_image_extension(extension)) {
      if (has_image_) {
        throw core::DataError(sample_place(name_, sample_.key), "has two images", kLayout);
      }
      std::swap(sample_.image, member);
      has_image_ = true;
    }
    extensions_.push_back(std::move(extension));
  }

  // Throws for the first incomplete sample. The error is delayed until here, since a repeated key
  // better explains a tar that is sorted by extension.
  void finish() {
    end_sample();
    if (incomplete_) throw core::DataError(*incomplete_);
  }

  std::vector<std::uint64_t> take_hashes() { return std::move(hashes_); }
  std::int64_t left_out() const { return left_out_; }

 private:
  void start(std::string_view key) {
    end_sample();
    is_excluded_ = std::binary_search(excluded_.begin(), excluded_.end(), key, std::less<>());
    if (!is_excluded_ && keys_ == Keys::kHash) hashes_.push_back(core::xxh3_64(key));
    if (!is_excluded_ && keys_ == Keys::kRefuse && !seen_.insert(key)) {
      throw core::DataError(sample_place(name_, std::string(key)), kKeyAgain, kLayout);
    }
    open_ = true;
    sample_.key = key;
    extensions_.clear();
    has_image_ = has_label_ = false;
  }

  void look_at_folder() {
    const auto label = rule_.class_of(sample_.key);
    if (!label) {
      throw core::DataError(
          sample_place(name_, sample_.key), "its folder is not a class",
          fmt::format("with data.label \"folder\" keys are CLASS/NAME; classes.json beside the "
                      "shards, or data.train, names the classes: {}",
                      shown_classes(rule_.classes)));
    }
    sample_.label = *label;
    has_label_ = true;
  }

  void end_sample() {
    if (!open_ || is_excluded_) return;
    if (rule_.of_folder() && has_image_) look_at_folder();
    if (has_image_ && has_label_) {
      use_(sample_);
    } else if (rule_.skips_incomplete) {
      ++left_out_;
    } else if (!incomplete_) {
      incomplete_.emplace(sample_place(name_, sample_.key),
                          has_label_   ? "has no image"
                          : has_image_ ? "has no label"
                                       : "has no image and no label",
                          remedy());
    }
  }

  // Returns advice based on what the incomplete sample contains.
  std::string remedy() const {
    const auto is_foreign = [](const std::string& extension) {
      return extension == "bmp" || extension == "gif" || extension == "tif" || extension == "tiff";
    };
    if (!has_image_) {
      return std::any_of(extensions_.begin(), extensions_.end(), is_foreign)
                 ? "scaletrain data import tar makes PNGs of .bmp, .gif, .tif and .tiff"
                 : kLayout;
    }
    std::string others;
    for (const std::string& extension : extensions_) {
      if (!is_image_extension(extension)) others += " ." + shown_name(extension);
    }
    if (!others.empty()) {
      return fmt::format(
          "it has{}: in training data.label names what holds the class, as {{\"field\": \"json\", "
          "\"key\": \"label\"}}; scaletrain data import tar --label-field or --label-key writes "
          ".cls",
          others);
    }
    if (sample_.key.find('/') == std::string::npos) return kLayout;
    return "where its folder is its class, data.label \"folder\" says so to training, and "
           "scaletrain "
           "data import tar --class-from-folder writes .cls";
  }

  std::string_view text_of(const TarMember& member, std::int64_t bytes) {
    const std::span<const std::byte> text = reader_.bytes(member.data, bytes);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  void read_label(const TarMember& member) {
    const auto place = [&] { return fmt::format("{}: {}", name_, shown_name(member.path)); };
    const auto refuse = [&](const std::string& found, const std::string& remedy) {
      throw core::DataError(place(), found, remedy);
    };
    if (member.bytes > kMaxLabelBytes) {
      core::refuse_placeholder(place(), text_of(member, std::int64_t{core::kPlaceholderBytes}));
      refuse(fmt::format("a label of {} bytes", member.bytes),
             fmt::format("a label has at most {} bytes", kMaxLabelBytes));
    }
    const std::string_view text = text_of(member, member.bytes);
    const auto label = rule_.parse(text);
    if (!label) core::refuse_placeholder(place(), text);
    if (!label && !rule_.key.empty()) {
      if (const std::string problem = json_problem(text); !problem.empty()) {
        refuse(problem,
               "write null in place of NaN and Infinity; json.dumps(..., allow_nan=False) "
               "finds them");
      }
      refuse(fmt::format(R"(label "{}" has no class in "{}")", shown_name(text),
                         shown_name(rule_.key)),
             fmt::format(
                 "data.label.key names another; a class is a whole number, a name, or a list of "
                 "them; classes.json beside the shards, or data.train, names the classes: {}",
                 shown_classes(rule_.classes)));
    }
    if (!label) {
      refuse(
          fmt::format(R"(label "{}" is not a class number)", shown_name(text)),
          fmt::format("a label is a whole number from 0 to {} in text, or a list of them: [1, 5]",
                      std::numeric_limits<std::int32_t>::max()));
    }
    sample_.label = label->number;
    sample_.labels_begin = member.begin;
  }

  const std::string& name_;
  TarReader& reader_;
  const std::function<void(const TarSample&)>& use_;
  std::span<const std::string> excluded_;
  const LabelRule& rule_;
  TarSample sample_;
  std::vector<std::string> extensions_;  // extensions of the sample so far
  bool open_ = false, is_excluded_ = false, has_image_ = false, has_label_ = false;
  Keys keys_;
  std::int64_t left_out_ = 0;
  KeySet seen_;                        // kRefuse
  std::vector<std::uint64_t> hashes_;  // kHash
  std::optional<core::DataError> incomplete_;
};

// Replaces a hard link by the file of an earlier sample that it points to. False if `links` may not
// search earlier members.
bool follow_link(TarLinks& links, bool may_look, TarMember& member) {
  if (member.regular || !sample_name_parts(member.path)) return true;
  const auto link = links.link_of(member);
  if (!link || !link->hard || !sample_name_parts(link->target)) return true;
  if (!may_look) return false;
  if (auto file = links.resolve(member, *link)) member = *std::move(file);
  return true;
}

// for_each_sample() and for_each_sample_between().
std::optional<std::vector<std::uint64_t>> walk(TarStretch stretch, const std::string& name,
                                               std::int64_t file_bytes, const ReadAt& read,
                                               const std::function<void(const TarSample&)>& use,
                                               std::span<const std::string> excluded,
                                               Grouping::Keys keys, const LabelRule& rule,
                                               std::int64_t* left_out = nullptr) {
  TarReader reader(name, file_bytes, read, stretch.begin);
  Grouping grouping(name, reader, use, excluded, rule, keys);
  bool before_first = stretch.begin > 0, behind_end = false;
  std::string first_key, last_key;  // keys of the samples at both ends
  TarLinks links(name, file_bytes, read);
  TarMember member;
  while (reader.next(member)) {
    if (!behind_end && member.begin >= stretch.end) {
      if (member.begin > stretch.end || before_first) return std::nullopt;
      behind_end = true;
    }
    if (!follow_link(links, keys == Grouping::Keys::kRefuse, member)) return std::nullopt;
    const auto parts = member.regular ? sample_name_parts(member.path) : std::nullopt;
    if (!parts) continue;
    if (before_first) {
      if (first_key.empty()) first_key = parts->key;
      if (parts->key == first_key) continue;
      before_first = false;
    }
    if (behind_end) {
      if (last_key.empty()) last_key = parts->key;
      if (parts->key != last_key) break;
    }
    grouping.add(member, *parts);
  }
  if (stretch.end < file_bytes && !behind_end) return std::nullopt;
  grouping.finish();
  if (left_out != nullptr) *left_out = grouping.left_out();
  return grouping.take_hashes();
}

}  // namespace

std::optional<SampleName> split_sample_name(std::string_view path) {
  const auto parts = sample_name_parts(path);
  if (!parts) return std::nullopt;
  return SampleName{std::string(parts->key), core::lower_case(parts->extension)};
}

bool is_image_extension(std::string_view extension) {
  constexpr std::array<std::string_view, 5> kImages{"jpg", "jpeg", "png", "webp", "rgb8"};
  return std::find(kImages.begin(), kImages.end(), extension) != kImages.end();
}

std::int64_t for_each_sample(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
                             const std::function<void(const TarSample&)>& use,
                             std::span<const std::string> excluded, const LabelRule& rule) {
  std::int64_t left_out = 0;
  walk({0, file_bytes}, name, file_bytes, read, use, excluded, Grouping::Keys::kRefuse, rule,
       &left_out);
  return left_out;
}

std::optional<std::vector<std::uint64_t>> for_each_sample_between(
    TarStretch stretch, const std::string& name, std::int64_t file_bytes, const ReadAt& read,
    const std::function<void(const TarSample&)>& use, std::span<const std::string> excluded) {
  return walk(stretch, name, file_bytes, read, use, excluded, Grouping::Keys::kHash, LabelRule());
}

}  // namespace scaletrain::format
