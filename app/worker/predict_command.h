#pragma once

#include "app/worker/models.h"

namespace scaletrain::app {

// Predicts the classes of images with a checkpoint of a classifier (docs/reference/evaluate.md).
// The flags are those of lib/recipe/evaluation.h. Throws core::DataError at the end if an image
// cannot be read.
int run_predict(int argc, char** argv, const Models& models);

}  // namespace scaletrain::app
