# SCALETRAIN_LIBTORCH, SCALETRAIN_CUDA and SCALETRAIN_NCCL: versions for `scaletrain --version`. The
# launcher links none of these libraries, so the versions come from their files.
set(SCALETRAIN_LIBTORCH "not built in")
set(SCALETRAIN_CUDA none)
set(SCALETRAIN_NCCL none)
if(NOT SCALETRAIN_WITH_TORCH)
  return()
endif()
set(SCALETRAIN_LIBTORCH 2.11)  # what third_party/torch accepts
if(EXISTS "${SCALETRAIN_TORCH_DIR}/version.py")  # of the wheel
  file(READ "${SCALETRAIN_TORCH_DIR}/version.py" text)
  if(text MATCHES "__version__ = '([^']+)'")
    set(SCALETRAIN_LIBTORCH "${CMAKE_MATCH_1}")
  endif()
  if(text MATCHES "\ncuda[^=\n]*= '([0-9.]+)'")
    set(SCALETRAIN_CUDA "${CMAKE_MATCH_1}")
  endif()
elseif(EXISTS "${SCALETRAIN_TORCH_DIR}/build-version")  # of the archive without Python
  file(STRINGS "${SCALETRAIN_TORCH_DIR}/build-version" SCALETRAIN_LIBTORCH LIMIT_COUNT 1)
  if(SCALETRAIN_LIBTORCH MATCHES "\\+cu([0-9]+)([0-9])$")
    set(SCALETRAIN_CUDA "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
  endif()
endif()
find_file(SCALETRAIN_NCCL_HEADER nccl.h NO_CACHE
          PATHS "${SCALETRAIN_TORCH_DIR}/../nvidia/nccl/include" "${SCALETRAIN_TORCH_DIR}/include")
if(SCALETRAIN_NCCL_HEADER)
  file(STRINGS "${SCALETRAIN_NCCL_HEADER}" lines REGEX "define NCCL_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  list(JOIN numbers "." SCALETRAIN_NCCL)
endif()
