// `launch --overfit N`, a wiring test: a model, its labels and its optimizer that fit together
// bring the loss on a few fixed samples near zero.
#pragma once

#include <cstdint>
#include <filesystem>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Changes `recipe` so that `ranks` ranks train on its first `samples` samples, all of them in each
// step: no augmentation, mixup, label smoothing, dropout, schedule or evaluation. The run folder
// becomes OUTPUT-overfit. Throws core::UsageError for token files and for samples that the ranks
// cannot share evenly.
void make_overfit(std::int64_t samples, int ranks, recipe::Recipe& recipe);

// Removes the folder of an earlier wiring test, which is not worth keeping, and logs that. Does
// nothing to other folders. Throws core::UsageError while that test runs.
void replace_wiring_test(const std::filesystem::path& run);

// Compares the last loss of the run with the first one and logs the result. Returns 0 if it is near
// zero; otherwise logs the usual causes and returns 1.
int judge_overfit(const std::filesystem::path& run);

}  // namespace scaletrain::launcher
