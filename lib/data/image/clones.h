// SCALETRAIN_CLONES before a function compiles it twice, for any x86-64 and for those with AVX2;
// the one that fits the processor is chosen when the program starts.
//
// Only for code whose results cannot depend on the choice: integers, or floats without contraction.
// Clang and the sanitizers compile one version.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SCALETRAIN_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define SCALETRAIN_CLONES
#endif
