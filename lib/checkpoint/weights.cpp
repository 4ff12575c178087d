#include "lib/checkpoint/weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/checkpoint/adapt.h"
#include "lib/checkpoint/differences.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/glob.h"
#include "lib/core/text/text.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/json_fields.h"
#include "lib/format/weights/element_values.h"
#include "lib/format/weights/weight_set.h"
#include "lib/format/weights/wrapper_names.h"

namespace scaletrain::checkpoint {
namespace {

using format::WeightTensor;
using namespace nlohmann::literals;  // NOLINT(google-build-using-namespace)

// Name prefixes of model wrappers: DistributedDataParallel, torch.compile, Hugging Face's heads.
constexpr std::array<std::string_view, 4> kPrefixes{"module.", "_orig_mod.", "model.",
                                                    "transformer."};

// Counts that older files lack; masks, frequencies and counts that a model without them can leave.
const std::vector<std::string>& may_be_missing() {
  static const std::vector<std::string> patterns{"*num_batches_tracked"};
  return patterns;
}
const std::vector<std::string>& may_be_left() {
  static const std::vector<std::string> patterns{"*.attn.bias", "*.attn.masked_bias",
                                                 "*rotary_emb.inv_freq", "*num_batches_tracked"};
  return patterns;
}

// A tensor of the file for one of the model.
struct Match {
  const WeightTensor* source = nullptr;
  at::Tensor target;
  enum class Fit { kAsItIs, kChannels, kPatches, kFirstPositions } fit = Fit::kAsItIs;
};

class Loader {
 public:
  Loader(const recipe::Weights& weights, const units::WeightRules& rules, const Tensors& tensors)
      : weights_(weights),
        rules_(rules),
        tensors_(tensors),
        set_(weights.path, weights.part, [](const std::string& text) { core::warn("{}", text); }) {
    for (const auto& file : set_.files().files) report_.files.push_back(file.string());
  }

  WeightReport load(const Progress& progress, const CheckFiles& check) {
    if (weights_.new_head && rules_.head.empty()) {
      throw core::RecipeError("/model/weights/new_head", "the model does not define a head",
                              "leave it out");
    }
    refuse_adapter();
    refuse_other_heads();
    check(set_.files());
    choose_wrapper();
    compare(progress);
    refuse_differences();
    const at::NoGradGuard no_grad;
    for (const auto& [name, match] : matches_) {
      progress();
      match.target.copy_(value_for(name, match));
    }
    return std::move(report_);
  }

 private:
  // A LoRA adapter holds changes of some weights, which are added to those of its base model.
  void refuse_adapter() const {
    for (const WeightTensor& source : set_.tensors()) {
      if (source.name.find(".lora_A.") == std::string::npos) continue;
      throw core::CheckpointError(
          weights_.path,
          core::printable(
              fmt::format("is a LoRA adapter ({}), not the weights of a model", source.name)),
          format::kMergeAdapter);
    }
  }

  // Says once which prefix is left out of the names.
  void choose_wrapper() {
    std::vector<std::string> names;
    names.reserve(set_.tensors().size());
    for (const WeightTensor& source : set_.tensors()) names.push_back(source.name);
    wrapper_ = format::common_wrapper(names, [this](const std::string& rest) {
      if (tensors_.contains(rest)) return 2;  // the model's own names first
      return name_in_model(rest).empty() ? 0 : 1;
    });
    const std::string left_out = set_.part().stripped + wrapper_;
    if (left_out.empty()) return;
    core::log("{}: \"{}\" in front of the names of its tensors is left out", weights_.path,
              left_out);
  }

  // Another number of heads would compute something else with the same tensors.
  void refuse_other_heads() const {
    if (rules_.heads == 0) return;
    const format::WeightFiles& files = set_.files();
    if (files.checkpoint) {
      check_heads(*files.checkpoint / format::kRecipeFile, "/model/heads"_json_pointer);
    } else if (files.config && !rules_.heads_name.empty()) {
      check_heads(*files.config, nlohmann::json::json_pointer("/" + rules_.heads_name));
    }
  }

  void check_heads(const std::filesystem::path& file,
                   const nlohmann::json::json_pointer& place) const {
    constexpr std::int64_t kMostBytes = 16 << 20;
    const nlohmann::json json = format::parse_object(
        core::read_file(file, kMostBytes, core::ExitCode::kData), file.string());
    if (!json.contains(place) || !json.at(place).is_number_integer()) return;
    const auto had = json.at(place).get<std::int64_t>();
    if (had == rules_.heads) return;
    throw core::CheckpointError(file.string(),
                                fmt::format("has {} attention heads ({}), and the model has {}",
                                            had, place.to_string(), rules_.heads),
                                fmt::format("set /model/heads to {}", had));
  }

  void compare(const Progress& progress) {
    std::vector<std::pair<std::string, const WeightTensor*>> renamed;  // the model's name first
    for (const WeightTensor& source : set_.tensors()) {
      if (tensors_.contains(source.name)) {
        match(source.name, source);
      } else {
        renamed.emplace_back(name_in_model(without_wrapper(source.name)), &source);
      }
    }
    for (const auto& [name, source] : renamed) {
      progress();
      if (name.empty() || seen_.contains(name)) {
        if (name.empty() || !is_same(*seen_.at(name), *source)) leave(source->name);
      } else {
        match(name, *source);
      }
    }
    for (const auto& [name, tensor] : tensors_) {
      if (seen_.contains(name)) continue;
      if (weights_.new_head && is_of_head(name)) {
        report_.initial.push_back(name);
        continue;
      }
      report_.missing.push_back(name);
      const bool allowed = core::matches_any(may_be_missing(), name) ||
                           core::matches_any(weights_.allow_missing, name);
      if (!allowed) missing_.add(name);
    }
  }

  std::string without_wrapper(const std::string& name) const {
    return name.starts_with(wrapper_) ? name.substr(wrapper_.size()) : name;
  }

  // "" for a tensor that the model does not have.
  std::string name_in_model(const std::string& name) const {
    if (tensors_.contains(name)) return name;
    for (const std::string_view prefix : kPrefixes) {
      if (name.starts_with(prefix) && tensors_.contains(name.substr(prefix.size()))) {
        return name.substr(prefix.size());
      }
      std::string longer = std::string(prefix) + name;
      if (tensors_.contains(longer)) return longer;
    }
    const auto other = rules_.also_called.find(name);
    return other == rules_.also_called.end() ? "" : other->second;
  }

  void leave(const std::string& name) {
    report_.unused.push_back(name);
    const bool allowed =
        core::matches_any(may_be_left(), name) || core::matches_any(weights_.allow_unused, name);
    if (!allowed) unused_.add(core::printable(name));
  }

  void match(const std::string& name, const WeightTensor& source) {
    const at::Tensor& target = tensors_.at(name);
    seen_.emplace(name, &source);
    if (weights_.new_head && is_of_head(name)) {
      report_.initial.push_back(name);
      return;
    }
    const bool converts = target.is_floating_point() ? format::is_floating(source.dtype)
                                                     : format::has_values(source.dtype) &&
                                                           !format::is_floating(source.dtype);
    if (!converts) {
      other_dtype_.add(fmt::format("{}: {} for {}", name, core::printable(source.dtype),
                                   c10::toString(target.scalar_type())));
      return;
    }
    Match found{.source = &source, .target = target};
    if (target.sizes() == at::IntArrayRef(source.shape)) {
      report_.taken.push_back(name);
    } else if (is_other_head(name, source, target)) {
      report_.initial.push_back(name);
      return;
    } else if (const auto how = adapts(name, source, found)) {
      report_.adapted.emplace(name, *how);
    } else {
      misshapen_.add(fmt::format("{}: {} instead of {}", name, shape_text(source.shape),
                                 shape_text(target.sizes())));
      return;  // and all of it is refused
    }
    matches_.emplace(name, found);
  }

  bool is_of_head(const std::string& name) const {
    return !rules_.head.empty() && name.starts_with(rules_.head + ".");
  }

  // True if only the number of classes differs.
  bool is_other_head(const std::string& name, const WeightTensor& source,
                     const at::Tensor& target) const {
    return is_of_head(name) && target.dim() > 0 &&
           source.shape.size() == static_cast<std::size_t>(target.dim()) &&
           target.sizes().slice(1) == at::IntArrayRef(source.shape).slice(1);
  }

  // How the source is made to fit, noted in `match`; nullopt where it cannot be.
  std::optional<std::string> adapts(const std::string& name, const WeightTensor& source,
                                    Match& match) const {
    const at::IntArrayRef had = source.shape, wanted = match.target.sizes();
    if (had.size() != wanted.size()) return std::nullopt;
    const auto same_but = [&](std::size_t dimension) {
      for (std::size_t i = 0; i < had.size(); ++i) {
        if (i != dimension && had[i] != wanted[i]) return false;
      }
      return had[dimension] > 0;
    };
    if (name == rules_.input && same_but(1)) {
      match.fit = Match::Fit::kChannels;
      return fmt::format("{} to {} channels", had[1], wanted[1]);
    }
    if (name == rules_.patch_positions && same_but(1)) {
      const auto from = side_of_positions(had[1], rules_.first_tokens);
      const auto to = side_of_positions(wanted[1], rules_.first_tokens);
      if (!from || !to) return std::nullopt;
      match.fit = Match::Fit::kPatches;
      return fmt::format("{0}x{0} to {1}x{1} patches", *from, *to);
    }
    if (name == rules_.positions && same_but(0)) {
      if (had[0] < wanted[0]) {
        throw core::CheckpointError(
            weights_.path,
            fmt::format("has {} positions ({}), and the model has {}", had[0], name, wanted[0]),
            fmt::format("set /model/positions to {} or less", had[0]));
      }
      match.fit = Match::Fit::kFirstPositions;
      return fmt::format("the first {} of {} positions", wanted[0], had[0]);
    }
    return std::nullopt;
  }

  void refuse_differences() const {
    std::vector<std::string> parts;
    for (const Differences* kind : {&missing_, &unused_, &misshapen_, &other_dtype_}) {
      kind->list(parts);
    }
    const bool fits = misshapen_.empty() && other_dtype_.empty();
    if (!parts.empty()) {
      throw core::CheckpointError(
          weights_.path, fmt::format("does not fit the model: tensors {}", fmt::join(parts, "; ")),
          fits ? "set the model of the weights, or give patterns in /model/weights: "
                 "\"allow_missing\" for tensors that keep their initialization, \"allow_unused\" "
                 "for tensors to ignore"
               : "set the model of the weights, with its sizes");
    }
    if (!matches_.empty()) return;
    throw core::CheckpointError(weights_.path, "has no tensor of the model",
                                "set the model of the weights");
  }

  // The whole of `source` as it is stored.
  at::Tensor read(const WeightTensor& source) const {
    at::Tensor tensor = at::empty(source.shape, *type_of(source.dtype));
    set_.read(source, bytes_of(tensor));
    return tensor;
  }

  bool is_same(const WeightTensor& a, const WeightTensor& b) const {
    return a.dtype == b.dtype && a.shape == b.shape && type_of(a.dtype) &&
           at::equal(read(a), read(b));
  }

  at::Tensor value_for(const std::string& name, const Match& match) const {
    // Half precision has no kernels for all of what follows.
    at::Tensor value = read(*match.source).to(match.target.scalar_type());
    if (value.is_floating_point() && !value.isfinite().all().item<bool>()) {
      throw core::CheckpointError(match.source->file.string(),
                                  fmt::format("holds a value of \"{}\" that is not finite", name),
                                  "use weights from before the training diverged");
    }
    switch (match.fit) {
      case Match::Fit::kAsItIs:
        return value;
      case Match::Fit::kChannels:
        return adapt_channels(value, match.target.size(1));
      case Match::Fit::kPatches:
        return resample_positions(value, rules_.first_tokens,
                                  *side_of_positions(match.target.size(1), rules_.first_tokens));
      case Match::Fit::kFirstPositions:
        return value.narrow(0, 0, match.target.size(0));
    }
    return value;
  }

  const recipe::Weights& weights_;
  const units::WeightRules& rules_;
  const Tensors& tensors_;
  format::WeightSet set_;
  std::string wrapper_;                              // in front of the names of the file
  std::map<std::string, const WeightTensor*> seen_;  // key: the model's name
  std::map<std::string, Match> matches_;             // tensors to copy; key: the model's name
  Differences missing_{"missing"}, unused_{"unused"}, misshapen_{"of another shape"},
      other_dtype_{"of another dtype"};
  WeightReport report_;
};

std::string named(const char* what, const std::vector<std::string>& names) {
  Differences list(what);
  for (const std::string& name : names) list.add(core::printable(name));
  std::vector<std::string> parts;
  list.list(parts);
  return parts.empty() ? fmt::format("0 {}", what) : parts.front();
}

}  // namespace

std::string summary(const WeightReport& report) {
  std::vector<std::string> adapted;
  adapted.reserve(report.adapted.size());
  for (const auto& [name, how] : report.adapted) {
    adapted.push_back(fmt::format("{}: {}", name, how));
  }
  return fmt::format("{} taken, {}, {}, {}, {}", core::counted(std::ssize(report.taken), "tensor"),
                     named("adapted", adapted), named("left as initialised", report.initial),
                     named("missing", report.missing), named("unused", report.unused));
}

std::string to_json(const WeightReport& report) {
  const nlohmann::ordered_json json{{"files", report.files},     {"taken", report.taken},
                                    {"adapted", report.adapted}, {"initial", report.initial},
                                    {"missing", report.missing}, {"unused", report.unused}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

WeightReport load_weights(const recipe::Weights& weights, const units::WeightRules& rules,
                          const Tensors& tensors, const Progress& progress,
                          const CheckFiles& check) {
  return Loader(weights, rules, tensors).load(progress, check);
}

}  // namespace scaletrain::checkpoint
