// Recognises out-of-memory errors of LibTorch and of NVIDIA's libraries: each has an exception of
// its own type, and only their texts show the cause.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace scaletrain::dist {

// Advice for the user.
inline constexpr const char* kLessMemory =
    "lower /batch/per_device and raise /batch/accumulate, or set \"recompute\": \"all\"; "
    "`scaletrain bench memory RECIPE` shows the savings of each technique";

// True if `message`, the complete what() of an exception, reports that device, pinned or host
// memory ran out.
bool says_out_of_memory(std::string_view message);

// An exception's text, that of LibTorch's without its C++ stack.
std::string text_of(const std::exception& error);
// True if `error` means that memory ran out.
bool is_out_of_memory(const std::exception& error);

}  // namespace scaletrain::dist
