#include "lib/format/safetensors/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::format {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxDimensions = 64;

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 200;
  return fmt::format("\"{}{}\"", core::printable(text.substr(0, kShown)),
                     text.size() > kShown ? "..." : "");
}

// Handles the JSON parser's events, so that only the list of tensors is built; a violated rule
// stops the parser.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(SafetensorsHeader& header) : header_(header) {}

  const std::string& problem() const { return problem_; }

  bool start_object(std::size_t /*elements*/) override {
    if (where_ == Where::kOutside) return go(Where::kTop);
    if (where_ == Where::kTop) {
      if (key_ == "__metadata__") return go(Where::kMetadata);
      tensor_ = TensorInfo{.name = key_, .dtype = "", .shape = {}};
      offsets_.clear();
      has_dtype_ = has_shape_ = has_offsets_ = false;
      return go(Where::kTensor);
    }
    return unexpected("an object");
  }

  bool key(std::string& key) override {
    if (where_ == Where::kTop && key == "__metadata__") {
      if (has_metadata_) return fail("__metadata__ occurs twice");
      has_metadata_ = true;
    }
    if (where_ == Where::kMetadata && header_.metadata.count(key) != 0) {
      return fail(fmt::format("__metadata__ has the key {} twice", in_quotes(key)));
    }
    if (where_ == Where::kTensor) {
      const bool known = key == "dtype" || key == "shape" || key == "data_offsets";
      if (!known) return fail_tensor(fmt::format("has the unknown key {}", in_quotes(key)));
      bool& seen = key == "dtype" ? has_dtype_ : key == "shape" ? has_shape_ : has_offsets_;
      if (seen) return fail_tensor(fmt::format("has {} twice", key));
      seen = true;
    }
    key_ = std::move(key);
    return true;
  }

  bool string(std::string& value) override {
    if (where_ == Where::kMetadata) {
      header_.metadata.emplace(key_, std::move(value));
      return true;
    }
    if (where_ == Where::kTensor && key_ == "dtype") {
      if (dtype_bytes(value) == 0) {
        return fail_tensor(fmt::format("has the unknown dtype {}", in_quotes(value)));
      }
      tensor_.dtype = std::move(value);
      return true;
    }
    return unexpected("a string");
  }

  bool start_array(std::size_t /*elements*/) override {
    if (where_ == Where::kTensor && key_ == "shape") return go(Where::kShape);
    if (where_ == Where::kTensor && key_ == "data_offsets") return go(Where::kOffsets);
    return unexpected("a list");
  }

  bool number_unsigned(std::uint64_t value) override {
    if (where_ != Where::kShape && where_ != Where::kOffsets) return unexpected("a number");
    if (value > std::uint64_t{kLargest}) return bad_number(std::to_string(value));
    auto& list = where_ == Where::kShape ? tensor_.shape : offsets_;
    list.push_back(static_cast<std::int64_t>(value));
    if (tensor_.shape.size() > kMaxDimensions) {
      return fail_tensor(fmt::format("has more than {} dimensions", kMaxDimensions));
    }
    if (offsets_.size() > 2) return fail_tensor("has more than two data_offsets");
    return true;
  }

  bool number_integer(std::int64_t value) override { return bad_number(std::to_string(value)); }
  bool number_float(double /*value*/, const std::string& text) override { return bad_number(text); }
  bool end_array() override { return go(Where::kTensor); }
  bool null() override { return unexpected("null"); }
  bool boolean(bool value) override { return unexpected(value ? "true" : "false"); }
  bool binary(Json::binary_t& /*value*/) override { return unexpected("bytes"); }

  bool end_object() override {
    if (where_ == Where::kMetadata) return go(Where::kTop);
    if (where_ == Where::kTop) return go(Where::kOutside);
    if (!has_dtype_) return fail_tensor("has no dtype");
    if (!has_shape_) return fail_tensor("has no shape");
    if (offsets_.size() != 2) return fail_tensor("has no data_offsets of two numbers");
    tensor_.begin = offsets_[0];
    tensor_.end = offsets_[1];
    if (!check_size()) return false;
    header_.tensors.push_back(std::move(tensor_));
    return go(Where::kTop);
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const Json::exception& /*error*/) override {
    return fail(fmt::format("the header is not JSON at its byte {}", position));
  }

 private:
  enum class Where { kOutside, kTop, kMetadata, kTensor, kShape, kOffsets };

  bool go(Where where) {
    where_ = where;
    return true;
  }
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool fail_tensor(const std::string& problem) {
    return fail(fmt::format("tensor {} {}", in_quotes(tensor_.name), problem));
  }
  bool unexpected(const std::string& kind) {
    if (where_ == Where::kTop)
      return fail(fmt::format("{} is {}, not an object", in_quotes(key_), kind));
    if (where_ == Where::kMetadata) {
      return fail(fmt::format("__metadata__ {} is {}, not a string", in_quotes(key_), kind));
    }
    return fail_tensor(fmt::format("has {} in {}", kind, key_));
  }
  bool bad_number(const std::string& text) {
    if (where_ != Where::kShape && where_ != Where::kOffsets) return unexpected("a number");
    return fail_tensor(fmt::format(
        "has {} in {}, where whole numbers from 0 to 2^63 - 1 are allowed", text, key_));
  }

  // Checks that element count times element size equals the range of data_offsets, without
  // overflow.
  bool check_size() {
    std::int64_t bytes = dtype_bytes(tensor_.dtype);
    for (const std::int64_t dimension : tensor_.shape) {
      if (__builtin_mul_overflow(bytes, dimension, &bytes)) {
        return fail_tensor("has a shape whose size overflows 64 bits");
      }
    }
    if (tensor_.end < tensor_.begin || tensor_.end - tensor_.begin != bytes) {
      return fail_tensor(fmt::format("has data_offsets [{}, {}], where {} bytes are expected",
                                     tensor_.begin, tensor_.end, bytes));
    }
    return true;
  }

  SafetensorsHeader& header_;
  Where where_ = Where::kOutside;
  std::string key_, problem_;
  TensorInfo tensor_;
  std::vector<std::int64_t> offsets_;
  bool has_metadata_ = false, has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
};

std::string sort_by_name(std::vector<TensorInfo>& tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
  const auto twice =
      std::adjacent_find(tensors.begin(), tensors.end(),
                         [](const TensorInfo& a, const TensorInfo& b) { return a.name == b.name; });
  return twice == tensors.end() ? ""
                                : fmt::format("tensor {} occurs twice", in_quotes(twice->name));
}

// Every byte of the data belongs to exactly one tensor.
std::string check_ranges(const std::vector<TensorInfo>& tensors, std::int64_t data_bytes) {
  std::vector<const TensorInfo*> in_order;
  in_order.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) in_order.push_back(&tensor);
  std::sort(in_order.begin(), in_order.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::int64_t position = 0;
  for (const TensorInfo* tensor : in_order) {
    if (tensor->begin != position) {
      return fmt::format("tensor {} begins at byte {} of the data, where {} is expected",
                         in_quotes(tensor->name), tensor->begin, position);
    }
    position = tensor->end;
  }
  if (position != data_bytes) {
    return fmt::format("the tensors take {} bytes, the file has {} for them", position, data_bytes);
  }
  return "";
}

}  // namespace

std::int64_t dtype_bytes(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 19> kDtypes{{
      {"BOOL", 1},    {"U8", 1},          {"I8", 1},          {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"F8_E8M0", 1}, {"F8_E4M3FNUZ", 1}, {"F8_E5M2FNUZ", 1}, {"I16", 2},     {"U16", 2},
      {"F16", 2},     {"BF16", 2},        {"I32", 4},         {"U32", 4},     {"F32", 4},
      {"I64", 8},     {"U64", 8},         {"F64", 8},         {"C64", 8},
  }};
  const auto* found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                   [&](const auto& entry) { return entry.first == dtype; });
  return found == kDtypes.end() ? 0 : found->second;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::int64_t data_bytes,
                                           const std::string& place) {
  // The format demands it; it also keeps out a byte order mark, which the JSON parser would skip.
  if (text.empty() || text.front() != '{') {
    throw core::CheckpointError(place, "the header does not begin with {", kSafetensorsRemedy);
  }
  SafetensorsHeader header;
  HeaderReader reader(header);
  std::string problem;
  if (!Json::sax_parse(text, &reader)) problem = reader.problem();
  if (problem.empty()) problem = sort_by_name(header.tensors);
  if (problem.empty()) problem = check_ranges(header.tensors, data_bytes);
  if (!problem.empty()) throw core::CheckpointError(place, problem, kSafetensorsRemedy);
  return header;
}

}  // namespace scaletrain::format
