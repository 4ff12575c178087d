#include "lib/exchange/compare_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/glob.h"
#include "lib/core/text/url.h"
#include "lib/exchange/known_of_weights.h"
#include "lib/exchange/known_tokenizer.h"
#include "lib/exchange/weights_model.h"
#include "lib/format/tokens/token_card.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::exchange {
namespace {

class Differences {
 public:
  explicit Differences(const std::vector<std::string>& allowed) : allowed_(allowed) {}

  bool is_allowed(const std::string& name) const { return core::matches_any(allowed_, name); }

  void add(const std::string& name, const std::string& theirs, const std::string& ours) {
    if (is_allowed(name)) return;
    found_.push_back(fmt::format("{} {}, not {}", name, core::printable(theirs), ours));
  }

  std::string text() const { return fmt::format("{}", fmt::join(found_, "; ")); }

 private:
  const std::vector<std::string>& allowed_;
  std::vector<std::string> found_;
};

std::string shown(const std::vector<double>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

bool are_close(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double kRounding = 1e-4;  // configs have three or four digits
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) {
           return std::abs(x - y) <= kRounding;
         });
}

// The shorter side that a crop of image_size is taken from.
double resized_side(const recipe::Data& data) {
  return static_cast<double>(data.eval_resize == 0 ? data.image_size : data.eval_resize);
}

void compare_images(const recipe::Data& data, const KnownOfWeights& known,
                    Differences& differences) {
  const auto compare = [&](const char* name, const std::vector<double>& theirs,
                           const std::vector<double>& ours) {
    if (!theirs.empty() && !are_close(theirs, ours)) {
      differences.add(name, shown(theirs), shown(ours));
    }
  };
  compare("mean", known.mean, data.normalize.mean);
  compare("std", known.std, data.normalize.std);
  if (!known.eval_filter.empty() && known.eval_filter != data.eval_filter) {
    differences.add("eval_filter", known.eval_filter, data.eval_filter);
  }
  const auto size = static_cast<double>(data.image_size);
  const double ours = resized_side(data);
  if (known.crop && std::abs(size / *known.crop - ours) >= 1) {  // a whole number of pixels
    differences.add("crop", fmt::format("{:.4g}", *known.crop),
                    fmt::format("{:.4g} (image_size over eval_resize)", size / ours));
  }
}

// Throws if `ours`, the tokenizer of the training tokens, is another one than that of the weights.
void check_tokenizer(const std::optional<KnownTokenizer>& ours, const format::WeightFiles& files) {
  if (!ours) return;
  const auto theirs = tokenizer_of_weights(files, ours->name);
  if (!theirs || is_same_tokenizer(theirs->name, ours->name)) return;
  throw core::CheckpointError(
      theirs->place,
      fmt::format("the weights belong to the tokenizer {}, and the training tokens to {} ({})",
                  core::printable(theirs->name), core::printable(ours->name),
                  core::shown_path(ours->place)),
      "tokenize with the tokenizer of the weights; to train the embeddings for another tokenizer, "
      "\"allow_other\": [\"tokenizer\"] in /model/weights");
}

// A vocabulary of another size has other tokens; a head with another number of classes is
// initialised anew.
void compare_sizes(const recipe::Model& model, const KnownOfWeights& known,
                   Differences& differences) {
  const auto size = [&](const char* key) -> std::optional<std::int64_t> {
    const auto found = known.model.find(key);
    if (found == known.model.end() || !found->is_number_integer()) return std::nullopt;
    return found->get<std::int64_t>();
  };
  const auto classes = size("num_classes"), tokens = size("vocab_size");
  if (classes && model.num_classes > 0 && *classes != model.num_classes &&
      !model.weights->new_head) {
    differences.add("num_classes", std::to_string(*classes),
                    fmt::format("{} (\"new_head\": true starts the head anew)", model.num_classes));
  }
  const auto own = model.options.find("vocab_size");
  const bool is_same_model = known.model.contains("name") && known.model.at("name") == model.name;
  if (!tokens || own == model.options.end() || !is_same_model) return;
  const std::int64_t ours = model.integer("vocab_size");
  if (*tokens == ours || differences.is_allowed("vocab_size")) return;
  throw core::CheckpointError(
      known.place,
      fmt::format("is of a model with {} tokens, and /model/vocab_size is {}", *tokens, ours),
      fmt::format("set /model/vocab_size to {}, or leave it out", *tokens));
}

}  // namespace

std::string differences_from_weights(const recipe::Recipe& recipe,
                                     const format::WeightFiles& files) {
  if (!recipe.model.weights) return "";
  check_same_computation(recipe.model, files);
  Differences differences(recipe.model.weights->allow_other);
  if (!differences.is_allowed("tokenizer") && !recipe.data.train.tokens.empty()) {
    check_tokenizer(tokenizer_of_tokens(recipe.data.train.tokens.front()), files);
  }
  const KnownOfWeights known = known_of_weights(files);
  compare_sizes(recipe.model, known, differences);
  if (recipe.data.train.tokens.empty()) compare_images(recipe.data, known, differences);
  if (!known.precision.empty() && !is_same_dtype(known.precision, recipe.precision.name)) {
    differences.add("precision", known.precision, recipe.precision.name);
  }
  return differences.text();
}

void check_tokenizer_at_url(const recipe::Recipe& recipe, const format::WeightFiles& files,
                            const ReadFile& read) {
  const std::vector<std::string>& tokens = recipe.data.train.tokens;
  if (!recipe.model.weights || tokens.empty() || !core::is_url(tokens.front()) ||
      core::matches_any(recipe.model.weights->allow_other, "tokenizer")) {
    return;
  }
  const std::optional<std::string> path = format::token_card_path(tokens.front());
  const std::optional<std::string> card = path ? read(*path) : std::nullopt;
  if (!card) return;
  const std::string place = core::shown_path(*path);
  check_tokenizer(KnownTokenizer{format::parse_token_card(*card, place).tokenizer, place}, files);
}

std::string weights_warning(const std::string& weights, const std::string& differences) {
  return fmt::format(
      "{}: the weights were trained with {}; set it in the recipe, or name it in "
      "/model/weights/allow_other",
      weights, differences);
}

}  // namespace scaletrain::exchange
