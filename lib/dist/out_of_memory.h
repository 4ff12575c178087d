// Which errors of LibTorch and of NVIDIA's libraries mean that memory ran out: each has an
// exception of its own kind, and only their texts say so.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace scaletrain::dist {

// What a person can do about it.
inline constexpr const char* kLessMemory =
    "make /batch/per_device smaller and /batch/accumulate larger, or set \"recompute\": \"all\"; "
    "`scaletrain bench memory RECIPE` shows what each saves";

// `message`: the whole of an exception's what(). True where device, pinned or host memory ran out.
bool says_out_of_memory(std::string_view message);

// An exception's text, that of LibTorch's without its C++ stack.
std::string text_of(const std::exception& error);
// Whether it means that memory ran out.
bool is_out_of_memory(const std::exception& error);

}  // namespace scaletrain::dist
