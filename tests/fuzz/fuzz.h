// What a fuzz target is: one function that takes any bytes and must not crash, and the inputs to
// begin with. Built twice: with libFuzzer (scripts/fuzz.sh), and with mutate_main.cpp for ctest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// libFuzzer's entry point.
extern "C" int LLVMFuzzerTestOneInput(  // NOLINT(readability-identifier-naming)
    const std::uint8_t* data, std::size_t size);

// Sound inputs that mutations begin with.
std::vector<std::string> fuzz_seeds();

// Ends the program, so that a fuzzer reports the input.
[[noreturn]] void fuzz_failed(const std::string& what);
