# A worker of your own (docs/internals/own-model.md), by our build and by an installed package:
#   scaletrain_add_worker(NAME MODELS models.def SOURCES file...)
# builds the program NAME, whose sources have a main, the factories of the rows in models.def, and
# writes NAME.registry.json beside it.

# What every worker needs when it is linked: its registry, and names in its own stacks.
function(scaletrain_finish_worker name)
  set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)
  add_custom_command(TARGET ${name} POST_BUILD VERBATIM
                     COMMAND "$<TARGET_FILE:${name}>" registry "$<TARGET_FILE:${name}>.registry.json")
endfunction()

function(scaletrain_add_worker name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "MODELS" "SOURCES")
  if(NOT ARG_MODELS OR NOT ARG_SOURCES OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "use scaletrain_add_worker(NAME MODELS models.def SOURCES file...)")
  endif()
  cmake_path(ABSOLUTE_PATH ARG_MODELS BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  add_executable(${name} ${ARG_SOURCES})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_definitions(${name} PRIVATE "SCALETRAIN_OWN_MODELS=\"${ARG_MODELS}\"")
  target_link_libraries(${name} PRIVATE scaletrain::worker)
  scaletrain_finish_worker(${name})
  # Opened beside the worker when a device, or a SentencePiece model, is used.
  foreach(library IN ITEMS cuda pieces)
    set(file "${scaletrain_PROGRAMS}/libscaletrain_${library}.so")
    if(EXISTS "${file}")
      add_custom_command(TARGET ${name} POST_BUILD VERBATIM
                         COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${file}"
                                 "$<TARGET_FILE_DIR:${name}>")
    endif()
  endforeach()
endfunction()
