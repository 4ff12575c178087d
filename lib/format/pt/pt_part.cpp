#include "lib/format/pt/pt_part.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::format {
namespace {

constexpr std::array<std::string_view, 12> kModelKeys{
    "state_dict", "model_state_dict", "model_state", "model",          "net",       "network",
    "module",     "weights",          "params",      "state_dict_ema", "model_ema", "ema"};
constexpr std::array<std::string_view, 2> kWrappers{"module.", "_orig_mod."};

// Top-level keys that are containers with tensors, and if there are tensors beside them.
struct TopKeys {
  std::vector<std::string> names;
  bool has_tensors = false;
};

TopKeys top_keys(const std::vector<PtTensor>& tensors) {
  TopKeys keys;
  for (const PtTensor& tensor : tensors) {
    std::string name = tensor.name.substr(0, tensor.top_bytes);
    keys.has_tensors = keys.has_tensors || name.empty();
    const bool is_known =
        name.empty() || std::find(keys.names.begin(), keys.names.end(), name) != keys.names.end();
    if (!is_known) keys.names.push_back(std::move(name));
  }
  std::sort(keys.names.begin(), keys.names.end());
  return keys;
}

std::string model_key(const TopKeys& keys, const std::string& place) {
  for (const std::string_view key : kModelKeys) {
    if (std::find(keys.names.begin(), keys.names.end(), key) != keys.names.end()) {
      return std::string(key);
    }
  }
  if (keys.has_tensors) return "";
  if (keys.names.size() == 1) return keys.names.front();
  throw core::CheckpointError(
      place,
      keys.names.empty() ? "holds no tensor"
                         : core::printable(fmt::format(
                               "has tensors below {}, and none of these is a known key of a model",
                               fmt::join(keys.names, ", "))),
      keys.names.empty() ? "name a file with the weights of a model" : "name the key to take");
}

// Removes a prefix that all names have, repeatedly: "module._orig_mod.".
void strip_wrappers(PtPart& part) {
  for (std::size_t i = 0; i < kWrappers.size();) {
    const std::string_view wrapper = kWrappers[i++];
    const bool is_everywhere =
        !part.tensors.empty() &&
        std::all_of(part.tensors.begin(), part.tensors.end(), [&](const auto& each) {
          return each.first.starts_with(wrapper) && each.first.size() > wrapper.size();
        });
    if (!is_everywhere) continue;
    for (auto& each : part.tensors) each.first.erase(0, wrapper.size());
    part.stripped += wrapper;
    i = 0;
  }
}

}  // namespace

PtPart choose_pt_part(const std::vector<PtTensor>& tensors, const std::string& place,
                      const std::string& wanted) {
  const TopKeys keys = top_keys(tensors);
  PtPart part;
  part.name = wanted.empty() ? model_key(keys, place) : wanted;
  const std::string front = part.name.empty() ? "" : part.name + ".";
  for (const PtTensor& tensor : tensors) {
    // A dot may also be part of a key: only the path of the containers is compared.
    if (!tensor.name.starts_with(front) || (!front.empty() && tensor.top_bytes == 0)) continue;
    part.tensors.emplace_back(tensor.name.substr(front.size()), &tensor);
  }
  if (part.tensors.empty()) {
    throw core::CheckpointError(
        place, core::printable(fmt::format("holds no tensor below \"{}\"", part.name)),
        core::printable(fmt::format(
            "its keys with tensors: {}",
            keys.names.empty() ? "none" : fmt::format("{}", fmt::join(keys.names, ", ")))));
  }
  const std::string top = part.name.substr(0, part.name.find('.'));
  for (const std::string& name : keys.names) {
    if (!part.name.empty() && name != top) part.others.push_back(name);
  }
  strip_wrappers(part);
  return part;
}

}  // namespace scaletrain::format
