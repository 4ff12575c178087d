// Read-only storage for http:// and https:// objects on any server that supports ranges.
#pragma once

#include <memory>

#include "lib/storage/http_caller.h"
#include "lib/storage/storage.h"

namespace scaletrain::storage {

// `caller` must outlive the result.
std::unique_ptr<Storage> make_http_storage(const HttpCaller& caller);

}  // namespace scaletrain::storage
