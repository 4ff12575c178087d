// `scaletrain-worker registry FILE`: writes the rows of this worker's models; its build runs it.
#pragma once

#include "lib/recipe/catalog/catalog.h"

namespace scaletrain::app {

// Throws core::UsageError, or core::StorageError if FILE cannot be written.
int run_registry(int argc, char** argv, const recipe::Catalog& catalog);

}  // namespace scaletrain::app
