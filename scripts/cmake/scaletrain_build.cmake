# The language, the warnings and the three ways to make a target:
#   scaletrain_module(NAME [TORCH] [BATCHES n] [DEPS target...])    lib/NAME, every .cpp in it
#   scaletrain_program(NAME [TORCH] SOURCES file... DEPS target...)
#   scaletrain_unit_tests(NAME [TORCH] [BATCHES n] DEPS target...)  tests/NAME, one ctest entry a file
# BATCHES: number of unity batches (default 1) where SCALETRAIN_UNITY is on.
option(SCALETRAIN_UNITY "Compile the files of a module together, in a few batches" OFF)
option(SCALETRAIN_TIDY "Check sources with clang-tidy before they are compiled (needs ccache)" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC collects its own garbage only above 1 GB: a tenth less time for each source.
  string(APPEND CMAKE_CXX_FLAGS " --param=ggc-min-heapsize=1000000 --param=ggc-min-expand=300")
endif()

find_program(SCALETRAIN_CCACHE ccache)
if(SCALETRAIN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A precompiled header is only cached when ccache may trust its time stamps. Paths are hashed
  # relative to the source folder, so that clones in different folders share one cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1)
  if(SCALETRAIN_TIDY)
    set(tidy "${PROJECT_SOURCE_DIR}/scripts/cmake/tidy_first.sh")
    list(APPEND CMAKE_CXX_COMPILER_LAUNCHER "CCACHE_PREFIX=${tidy}"
         "CCACHE_EXTRAFILES=${tidy}:${PROJECT_SOURCE_DIR}/.clang-tidy")
  endif()
  list(APPEND CMAKE_CXX_COMPILER_LAUNCHER "${SCALETRAIN_CCACHE}")
endif()
find_program(SCALETRAIN_MOLD mold)
if(SCALETRAIN_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(SCALETRAIN_SANITIZER)
  add_compile_options(-fsanitize=${SCALETRAIN_SANITIZER} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SCALETRAIN_SANITIZER})
endif()

add_library(scaletrain_warnings INTERFACE)
target_compile_options(scaletrain_warnings INTERFACE -Wall -Wextra -Wshadow -Wold-style-cast)

# Links `target` PUBLIC to others; an installed library asks for third_party::NAME by name, which the
# package's finders give ($<1:> keeps CMake from looking for it in what is installed).
function(_scaletrain_link target)
  foreach(dep IN LISTS ARGN)
    if(dep MATCHES "^third_party::")
      target_link_libraries(${target} PUBLIC "$<BUILD_INTERFACE:${dep}>"
                                             "$<INSTALL_INTERFACE:$<1:${dep}>>")
    else()
      target_link_libraries(${target} PUBLIC ${dep})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:scaletrain_warnings>)
endfunction()

# A library that is installed with HEADERS as scaletrain::NAME.
function(_scaletrain_export target name)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "" "HEADERS")
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_sources(${target} PUBLIC FILE_SET HEADERS
                 BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${ARG_HEADERS})
  install(TARGETS ${target} EXPORT scaletrain_libraries ARCHIVE DESTINATION lib/scaletrain
          FILE_SET HEADERS DESTINATION include/scaletrain)
endfunction()

# Compiles sources in `count` unity batches. A file's batch follows from the hash of its name, so that
# a new file moves no other one and only its own batch is compiled again; a file with options of its
# own is compiled alone. Not CMake's own unity build, which includes files by absolute paths: __FILE__
# and with it the key of the compiler cache would differ between clones.
function(_scaletrain_batch target count)
  if(NOT SCALETRAIN_UNITY)
    return()
  endif()
  foreach(source IN LISTS ARGN)
    get_source_file_property(options "${source}" COMPILE_OPTIONS)
    get_source_file_property(definitions "${source}" COMPILE_DEFINITIONS)
    if(options OR definitions)
      continue()
    endif()
    cmake_path(GET source FILENAME name)
    string(MD5 hash "${name}")
    string(SUBSTRING "${hash}" 0 6 digits)
    math(EXPR batch "0x${digits} % ${count}")
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE path)
    string(APPEND batch_${batch} "#include \"${path}\"\n")
    set_source_files_properties("${source}" PROPERTIES HEADER_FILE_ONLY ON)
  endforeach()
  foreach(batch RANGE ${count})
    if(batch_${batch})
      set(file "${CMAKE_CURRENT_BINARY_DIR}/${target}/unity_${batch}.cpp")
      file(CONFIGURE OUTPUT "${file}" CONTENT "${batch_${batch}}" @ONLY)
      target_sources(${target} PRIVATE "${file}")
    endif()
  endforeach()
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
endfunction()

# LibTorch's headers are parsed once for all targets of one build folder.
function(_scaletrain_use_torch target)
  _scaletrain_link(${target} third_party::torch)
  # Programs are compiled as libraries are: GCC refuses a header that was precompiled otherwise.
  target_compile_options(${target} PRIVATE -fPIC)
  target_precompile_headers(${target} REUSE_FROM scaletrain_torch_pch)
endfunction()

function(scaletrain_module name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "TORCH" "BATCHES" "DEPS")
  if(ARG_TORCH AND NOT SCALETRAIN_WITH_TORCH)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
  add_library(scaletrain_${name} STATIC ${sources})
  add_library(scaletrain::${name} ALIAS scaletrain_${name})
  target_include_directories(scaletrain_${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  _scaletrain_export(scaletrain_${name} ${name} HEADERS ${headers})
  _scaletrain_link(scaletrain_${name} ${ARG_DEPS})
  if(ARG_TORCH)
    _scaletrain_use_torch(scaletrain_${name})
  endif()
  if(NOT ARG_BATCHES)
    set(ARG_BATCHES 1)
  endif()
  # Called when the directory is done, since its CMakeLists.txt may still take files out of batches.
  cmake_language(EVAL CODE "cmake_language(DEFER CALL _scaletrain_batch
                            scaletrain_${name} ${ARG_BATCHES} [[${sources}]])")
endfunction()

function(scaletrain_program name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "TORCH" "" "SOURCES;DEPS")
  if(ARG_TORCH AND NOT SCALETRAIN_WITH_TORCH)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} scaletrain_warnings)
  if(ARG_TORCH)
    _scaletrain_use_torch(${name})
    set_target_properties(${name} PROPERTIES INSTALL_RPATH "${SCALETRAIN_TORCH_DIR}/lib")
  endif()
endfunction()

function(scaletrain_unit_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "TORCH" "BATCHES" "DEPS")
  if(ARG_TORCH AND NOT SCALETRAIN_WITH_TORCH)
    return()
  endif()
  set(folder "${PROJECT_SOURCE_DIR}/tests/${name}")
  file(GLOB_RECURSE tests RELATIVE "${folder}" CONFIGURE_DEPENDS "${folder}/*_test.cpp")
  file(GLOB_RECURSE helpers CONFIGURE_DEPENDS "${folder}/*_support.cpp")
  if(NOT tests)
    return()
  endif()
  list(TRANSFORM tests PREPEND "${folder}/" OUTPUT_VARIABLE sources)
  add_executable(test_${name} ${sources} ${helpers})
  target_link_libraries(test_${name} PRIVATE ${ARG_DEPS} scaletrain_doctest_main scaletrain_warnings)
  add_dependencies(unit_tests test_${name})
  target_compile_options(test_${name} PRIVATE $<IF:$<CONFIG:Release>,-O1,-O0>)
  if(NOT ARG_BATCHES)
    set(ARG_BATCHES 1)
  endif()
  _scaletrain_batch(test_${name} ${ARG_BATCHES} ${sources})
  if(ARG_TORCH)
    _scaletrain_use_torch(test_${name})
  endif()
  foreach(test IN LISTS tests)
    string(REGEX REPLACE "_test\\.cpp$" "" label "${test}")
    add_test(NAME "${name}/${label}"
             COMMAND test_${name} "--source-file=*tests/${name}/${test}" --no-version)
    set_tests_properties("${name}/${label}" PROPERTIES LABELS unit TIMEOUT 600
                         SKIP_RETURN_CODE 77) # tests/doctest_main.cpp
  endforeach()
endfunction()
