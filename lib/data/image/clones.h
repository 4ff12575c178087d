// SCALETRAIN_CLONES before a function compiles it twice: for any x86-64, and with AVX2. The program
// chooses the version for the processor when it starts.
//
// Use it only where both versions give the same results: integers, or floats without contraction.
// Clang and the sanitizers compile a single version.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SCALETRAIN_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define SCALETRAIN_CLONES
#endif
