// SCALETRAIN_CLONES before a function compiles it for several generations of x86-64; the best one
// that the processor has is chosen when the program starts.
//
// Only for integer code, whose results cannot depend on the choice. Clang and the sanitizers
// compile one version.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SCALETRAIN_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SCALETRAIN_CLONES
#endif
