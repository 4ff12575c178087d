#include "lib/train/rules/bit_flip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/process/planted_delay.h"
#include "lib/core/text/text.h"

namespace scaletrain::train {
namespace {

constexpr std::string_view kKind = "flip-bit:";
constexpr std::array<std::pair<std::string_view, BitFlip::Where>, 5> kPlaces{
    {{"weights", BitFlip::Where::kWeights},
     {"moments", BitFlip::Where::kMoments},
     {"gradients", BitFlip::Where::kGradients},
     {"comm", BitFlip::Where::kComm},
     {"products", BitFlip::Where::kProducts}}};

// Splits "rank=1@step=20:bit=3" into names and values. Nothing is left out: a name that stands
// twice, or without a value, is found by its empty value.
std::map<std::string_view, std::string_view> fields_of(std::string_view text) {
  std::map<std::string_view, std::string_view> fields;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(":@"), text.size());
    const std::string_view field = text.substr(0, end);
    const std::size_t equals = std::min(field.find('='), field.size());
    const std::string_view value = field.substr(std::min(equals + 1, field.size()));
    if (!fields.emplace(field.substr(0, equals), value).second)
      fields[field.substr(0, equals)] = "";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return fields;
}

std::optional<BitFlip::Where> place_of(std::string_view name) {
  const auto* const found =
      std::ranges::find(kPlaces, name, &std::pair<std::string_view, BitFlip::Where>::first);
  return found == kPlaces.end() ? std::nullopt : std::optional(found->second);
}

// Returns a view of one element as an integer of its size.
at::Tensor element_bits(const at::Tensor& tensor, std::int64_t index) {
  const at::Tensor element = tensor.detach().as_strided({1}, {1}, tensor.storage_offset() + index);
  switch (tensor.itemsize()) {
    case 1:
      return element.view(at::kByte);
    case 2:
      return element.view(at::kShort);
    case 4:
      return element.view(at::kInt);
    default:
      return element.view(at::kLong);
  }
}

// Returns the tensor that has element `index` of all, modulo their number, and the element's place
// in it; an undefined tensor if there is no element.
std::pair<at::Tensor, std::int64_t> find_element(const std::vector<at::Tensor>& tensors,
                                                 std::int64_t index) {
  std::int64_t count = 0;
  for (const at::Tensor& tensor : tensors) count += tensor.numel();
  if (count == 0) return {};
  index %= count;
  for (const at::Tensor& tensor : tensors) {
    if (index < tensor.numel()) return {tensor, index};
    index -= tensor.numel();
  }
  return {};
}

void flip_one(const at::Tensor& tensor, std::int64_t element, int bit) {
  const int bits = 8 * static_cast<int>(tensor.itemsize());
  if (bit >= bits) {
    throw core::UsageError("SCALETRAIN_FAULT", fmt::format("an element has no bit {}", bit),
                           fmt::format("use a bit from 0 to {}", bits - 1));
  }
  // The highest bit is the sign of the integer of this size; a byte has none.
  const bool is_sign = bit == bits - 1 && bits > 8;
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  element_bits(tensor, element)
      .bitwise_xor_(is_sign ? lowest >> (64 - bits) : std::int64_t{1} << bit);
}

}  // namespace

std::optional<BitFlip> parse_bit_flip(const std::string& text) {
  if (!text.starts_with(kKind)) return std::nullopt;
  auto fields = fields_of(std::string_view(text).substr(kKind.size()));
  const auto number = [&](const char* name) {
    const auto value = core::parse_number<std::int64_t>(fields[name]);
    fields.erase(name);
    return value && *value >= 0 ? value : std::nullopt;
  };
  const auto where = place_of(fields["where"]);
  fields.erase("where");
  const bool has_index = fields.contains("index");
  const auto index = has_index ? number("index") : std::optional<std::int64_t>(0);
  const auto rank = number("rank"), step = number("step"), bit = number("bit");
  if (!where || !rank || !step || !bit || *bit > 63 || !index || !fields.empty()) {
    throw core::UsageError(
        "SCALETRAIN_FAULT", fmt::format("\"{}\" is no bit flip", text),
        "use flip-bit:rank=R@step=S:where=weights|gradients|moments|products|comm:bit=B, and "
        "perhaps :index=I; lib/train/rules/bit_flip.h explains them");
  }
  return BitFlip{.rank = static_cast<int>(*rank),
                 .step = *step,
                 .where = *where,
                 .bit = static_cast<int>(*bit),
                 .index = *index};
}

void flip_bit(const std::vector<at::Tensor>& tensors, std::int64_t index, int bit) {
  const auto [tensor, element] = find_element(tensors, index);
  if (tensor.defined()) flip_one(tensor, element, bit);
}

void flip_in_backward(const std::vector<at::Tensor>& parameters, const BitFlip& flip) {
  const auto [parameter, element] = find_element(parameters, flip.index);
  if (!parameter.defined()) return;
  parameter.register_hook([element = element, bit = flip.bit,
                           is_done = std::make_shared<bool>(false)](const at::Tensor& gradient) {
    if (std::exchange(*is_done, true)) return gradient;
    at::Tensor flipped = gradient.detach().clone(at::MemoryFormat::Contiguous);
    flip_one(flipped, element, bit);
    return flipped;
  });
}

PlantedFlips::PlantedFlips(int rank) {
  for (const std::string& text : core::planted_faults()) {
    const std::optional<BitFlip> flip = parse_bit_flip(text);
    if (flip && flip->rank == rank) flips_.push_back(*flip);
  }
}

std::optional<BitFlip> PlantedFlips::take(BitFlip::Where where, std::int64_t step) {
  const auto found = std::ranges::find_if(
      flips_, [&](const BitFlip& flip) { return flip.where == where && flip.step == step; });
  if (found == flips_.end()) return std::nullopt;
  const BitFlip flip = *found;
  flips_.erase(found);
  return flip;
}

void PlantedFlips::commit(BitFlip::Where where, std::int64_t step,
                          const std::function<std::vector<at::Tensor>()>& tensors) {
  const std::optional<BitFlip> flip = take(where, step);
  if (!flip) return;
  std::vector<at::Tensor> floats;
  std::ranges::copy_if(tensors(), std::back_inserter(floats),
                       [](const at::Tensor& tensor) { return tensor.is_floating_point(); });
  flip_bit(floats, flip->index, flip->bit);
}

}  // namespace scaletrain::train
