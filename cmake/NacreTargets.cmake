# One target per folder, made from whatever `*.cc` it holds. A folder without sources is an
# interface library, so that a layer can be declared before it is written.

# nacre_sources(OUT GLOB...): the files that match, in the current folder unless absolute.
function(nacre_sources out)
  file(GLOB sources CONFIGURE_DEPENDS ${ARGN})
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# Half of what a source takes to compile are the standard library's headers. The libraries share one
# precompiled header of those that most sources include; no source relies on it, as
# -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON, `./run lint` and the installed headers show.
function(nacre_precompile_headers)
  set(source ${PROJECT_BINARY_DIR}/generated/precompiled.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(nacre_precompiled OBJECT ${source})
  target_compile_features(nacre_precompiled PRIVATE cxx_std_20)
  target_link_libraries(nacre_precompiled PRIVATE PkgConfig::nacre_spdlog)
  target_precompile_headers(nacre_precompiled PRIVATE
    <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <cstring> <deque>
    <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <thread> <unordered_map>
    <utility> <vector> <fmt/format.h>)
endfunction()

# nacre_compile_together(TARGET SOURCE...): compiles up to eight of the sources that are in the same
# folder as one, as most of what a source takes to compile are headers that its neighbours include,
# too: it halves the time of a build from nothing. So names in anonymous namespaces are unique in
# a folder. No source relies on what its neighbours include, as `./run lint` shows. Of tests, whose
# folders are small, up to twelve of one target are compiled as one.
function(nacre_compile_together target)
  if(NOT NACRE_COMPILE_TOGETHER)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # What is in an anonymous namespace may be a member of what is only in the same source.
  target_compile_options(${target} PRIVATE
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>>:-Wno-subobject-linkage>)
  set(sources ${ARGN})
  list(SORT sources)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(REPLACE "/" "_" group "${folder}")
    set(most 8)
    if(target MATCHES "_tests$")
      set(group ${target})
      set(most 12)
    endif()
    list(APPEND of_${group} ${source})
    list(LENGTH of_${group} count)
    math(EXPR batch "(${count} - 1) / ${most}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${batch})
  endforeach()
endfunction()

# nacre_sources_with_planted_bugs(OUT SOURCE...): those that have bugs (util/planted_bug.h).
function(nacre_sources_with_planted_bugs out)
  set(with)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} bugs REGEX "NACRE_PLANTED_BUG\\(" LIMIT_COUNT 1)
    if(bugs)
      list(APPEND with ${source})
    endif()
  endforeach()
  set(${out} ${with} PARENT_SCOPE)
endfunction()

# nacre_library(NAME DEPENDENCY...): NAME from all `*.cc` of this folder and the folders in it, but
# `*_main.cc`.
function(nacre_library name)
  nacre_sources(sources *.cc */*.cc)
  list(FILTER sources EXCLUDE REGEX "_main\\.cc$")
  if(sources)
    add_library(${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_compile_features(${name} ${scope} cxx_std_20)
  target_include_directories(${name} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} ${scope} ${ARGN})
  if(sources)
    target_precompile_headers(${name} REUSE_FROM nacre_precompiled)
    # planted_tests has these instead of the library's, object by object.
    nacre_sources_with_planted_bugs(planted ${sources})
    list(REMOVE_ITEM sources ${planted} "")
    nacre_compile_together(${name} ${sources})
  endif()
endfunction()

# nacre_protobuf(NAME): compiles `*.proto` of this folder and the folders in it, for
# `#include "folder/file.pb.h"`.
function(nacre_protobuf name)
  nacre_sources(protos *.proto */*.proto)
  set(generated)
  foreach(proto IN LISTS protos)
    cmake_path(GET proto STEM stem)
    cmake_path(RELATIVE_PATH proto BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE relative)
    cmake_path(GET relative PARENT_PATH folder)
    set(base ${PROJECT_BINARY_DIR}/generated/${folder}/${stem}.pb)
    add_custom_command(
      OUTPUT ${base}.cc ${base}.h
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}
              --cpp_out=${PROJECT_BINARY_DIR}/generated ${proto}
      DEPENDS ${proto}
      VERBATIM)
    list(APPEND generated ${base}.cc ${base}.h)
  endforeach()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated)
  if(generated)
    add_library(${name} STATIC ${generated})
    target_compile_options(${name} PRIVATE -w)
    set_target_properties(${name} PROPERTIES CXX_CLANG_TIDY "")
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} SYSTEM ${scope}
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>)
  target_link_libraries(${name} ${scope} protobuf::libprotobuf)
endfunction()

# nacre_program(NAME MAIN_FILE DEPENDENCY...): an executable that is not installed.
function(nacre_program name main)
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE ${ARGN} nacre_build_version_object PkgConfig::nacre_gflags)
  if(NOT NACRE_SANITIZE)  # Sanitizers bring an allocator of their own.
    # Named nowhere in the code, so the linker must be told to keep it.
    target_link_libraries(${name} PRIVATE
      -Wl,--no-as-needed PkgConfig::nacre_jemalloc -Wl,--as-needed)
  endif()
endfunction()

# nacre_executable(NAME COMPONENT MAIN_FILE DEPENDENCY...): one that is, with that component.
function(nacre_executable name component main)
  nacre_program(${name} ${main} ${ARGN})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
endfunction()
