// Compares a recipe with facts stored beside its initial weights, which no tensor shape would
// reveal.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lib/format/weights/weight_files.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::exchange {

// Returns the differences in mean, std, eval_filter, crop ratio of evaluation, dtype and number of
// classes, such as "mean [0.5, 0.5, 0.5], not [0.485, 0.456, 0.406]", with the recipe's value last.
// Ignores unknown values and keys in /model/weights/allow_other; "" if nothing differs.
//
// Throws core::CheckpointError if the tokenizer differs from the one in the training tokens' card
// or the vocabulary sizes differ, and the errors of check_same_computation()
// (lib/exchange/weights_model.h).
std::string differences_from_weights(const recipe::Recipe& recipe,
                                     const format::WeightFiles& files);

// Reads the file at a path or URL; nullopt if there is none.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;

// For training tokens at a URL: throws core::CheckpointError if their card, read with `read`, names
// another tokenizer than the weights; core::DataError for a damaged card.
// differences_from_weights() compares local cards.
void check_tokenizer_at_url(const recipe::Recipe& recipe, const format::WeightFiles& files,
                            const ReadFile& read);

// Returns the warning about such differences: one line with a remedy.
std::string weights_warning(const std::string& weights, const std::string& differences);

}  // namespace scaletrain::exchange
