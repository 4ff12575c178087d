// http:// and https:// objects of any server that knows ranges; read only.
#pragma once

#include <memory>

#include "lib/storage/http_caller.h"
#include "lib/storage/storage.h"

namespace scaletrain::storage {

// `caller` must outlive it.
std::unique_ptr<Storage> make_http_storage(const HttpCaller& caller);

}  // namespace scaletrain::storage
