# LibTorch 2.11.0: PyPI's wheel torch==2.11.0 (CUDA 13 build), BSD-3-Clause.
# Why: tensors, autograd, c10d and the kernels. Only libtorch_cpu and libc10 are linked, so a CPU
# process pays nothing for CUDA; libscaletrain_cuda.so links the rest.
# Found: SCALETRAIN_TORCH, else the wheel in .deps/venv.
set(torch_dir "${SCALETRAIN_TORCH}")
if(NOT torch_dir)
  file(GLOB torch_dir "${PROJECT_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages/torch")
endif()
if(NOT EXISTS "${torch_dir}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "LibTorch was not found (looked in '${torch_dir}'): run scripts/setup.sh, "
                      "or name its folder with -DSCALETRAIN_TORCH=...")
endif()
set(SCALETRAIN_TORCH_DIR "${torch_dir}" CACHE INTERNAL "")

file(STRINGS "${torch_dir}/include/torch/headeronly/version.h" version_lines
     REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
string(REGEX MATCHALL "[0-9]+" version "${version_lines}")
list(JOIN version "." version)
if(NOT version STREQUAL "2.11")
  message(FATAL_ERROR "LibTorch ${version} in ${torch_dir}: 2.11 is needed")
endif()

if(SCALETRAIN_WITH_TORCH)
  foreach(library IN ITEMS torch_cpu c10)
    add_library(third_party_${library} SHARED IMPORTED GLOBAL)
    set_target_properties(third_party_${library} PROPERTIES
      IMPORTED_LOCATION "${torch_dir}/lib/lib${library}.so")
  endforeach()
  add_library(third_party_torch INTERFACE)
  add_library(third_party::torch ALIAS third_party_torch)
  target_include_directories(third_party_torch SYSTEM INTERFACE
    "${torch_dir}/include" "${torch_dir}/include/torch/csrc/api/include")
  # USE_C10D_GLOO switches on the declarations of ProcessGroupGloo.hpp.
  target_compile_definitions(third_party_torch INTERFACE USE_C10D_GLOO)
  target_link_libraries(third_party_torch INTERFACE third_party_torch_cpu third_party_c10)
  target_link_options(third_party_torch INTERFACE -Wl,--allow-shlib-undefined)
  # The OpenMP that it uses itself: the wheel's, where it has one.
  if(EXISTS "${torch_dir}/lib/libgomp.so.1")
    target_link_libraries(third_party_torch INTERFACE "${torch_dir}/lib/libgomp.so.1")
  else()
    target_link_libraries(third_party_torch INTERFACE gomp)
  endif()
endif()
