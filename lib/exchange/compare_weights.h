// Compares a recipe with what the weights say that it starts from: what differs without a trace in
// any tensor's shape.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lib/format/weights/weight_files.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::exchange {

// Differences in mean, std, eval_filter, the share of the image that is evaluated (crop), the dtype
// and the number of classes, as "mean [0.5, 0.5, 0.5], not [0.485, 0.456, 0.406]"; "" where all
// that is known is the same, and without what /model/weights/allow_other names. The recipe's value
// comes last.
//
// Throws core::CheckpointError where the weights are of another tokenizer than the card of the
// training tokens or a vocabulary of another size, and as check_same_computation
// (lib/exchange/weights_model.h) does.
std::string differences_from_weights(const recipe::Recipe& recipe,
                                     const format::WeightFiles& files);

// Reads the file at a path or URL; nullopt if there is none.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;

// Throws core::CheckpointError if the training tokens lie at a URL and their card, which `read`
// reads, names another tokenizer than the weights have; core::DataError for a damaged card.
// differences_from_weights compares the cards on this machine.
void check_tokenizer_at_url(const recipe::Recipe& recipe, const format::WeightFiles& files,
                            const ReadFile& read);

// The warning about such differences: one line that says what to do.
std::string weights_warning(const std::string& weights, const std::string& differences);

}  // namespace scaletrain::exchange
